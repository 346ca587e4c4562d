"""What a campaign's class demands beyond its own words, and can be computed only when freezing."""

import re
from collections.abc import Iterator

from labctl.codes import Code
from labctl.engines.vocabulary import EngineVocabulary
from labctl.errors import FreezeRefused, Problem
from labctl.packet.contents import EndpointSubject
from labctl.prereg.arms import arm_argv, arm_environment
from labctl.prereg.model import Arm, CampaignClass


def refuse_unfit_class(subject: EndpointSubject, vocabulary: EngineVocabulary) -> None:
    """Refuse a campaign that claims more than its service can give.

    Raises:
        FreezeRefused: with every option that a campaign of its class cannot use (RULE).
    """
    problems = tuple(_forbidden_options(subject, vocabulary))
    if problems:
        raise FreezeRefused(problems)


def _forbidden_options(subject: EndpointSubject, vocabulary: EngineVocabulary) -> Iterator[Problem]:
    said = subject.preregistration
    is_record = said.campaign_class is CampaignClass.RECORD
    refused = [one for one in vocabulary.forbidden_options if is_record or one.refused_for == "every class"]
    for arm in Arm:
        settings = [f"{name}={value}" for name, value in arm_environment(said, arm).items()]
        for part in (*arm_argv(said, arm), *settings):
            for option in refused:
                if re.search(option.pattern, part):
                    expected = f"no option by which {option.reason}"
                    do = "remove it, or choose another class" if option.refused_for == "record" else "remove it"
                    yield Problem(Code.RULE, f"service, arm {arm}", expected, repr(part)[:160], do)
