"""The two arms as templates, and the way from templates to what one start sees and back."""

import re
from collections.abc import Mapping, Sequence
from typing import Literal, assert_never

from labctl.frozen import FrozenModel, SafeName
from labctl.prereg.field_types import Line
from labctl.prereg.model import Arm, Preregistration
from labctl.prereg.treatment_kinds import ArgumentTreatment, BinariesTreatment, EnvironmentTreatment

PLACEHOLDER = re.compile(
    r"\{(?:python|host|port|nonce|leg_dir|cache_dir|binaries|model:([A-Za-z0-9][A-Za-z0-9._-]{0,127}))\}"
)


class StartValues(FrozenModel):
    """Everything that differs from start to start: the values of the placeholders."""

    python: Line
    """The interpreter's path."""
    host: Line
    """The address to listen on."""
    port: int
    """The port to listen on."""
    nonce: Line
    """The start's own random name."""
    leg_dir: Line
    """The start's private folder."""
    cache_dir: Line
    """The start's empty cache folder."""
    models: dict[SafeName, Line]
    """Model folders by name."""
    binaries: Line | None = None
    """The arm's folder of compiled files, where the arms differ in it."""

    def of(self, placeholder: str) -> str:
        """The value of one placeholder, such as `{port}` or `{model:target}`."""
        name = placeholder[1:-1]
        if name.startswith("model:"):
            return self.models[name.removeprefix("model:")]
        return str(getattr(self, name))


def arm_argv(preregistration: Preregistration, arm: Arm) -> tuple[str, ...]:
    """The argument list of an arm, as a template; the treatment's argument stands at the end."""
    command = preregistration.service.command
    treatment = preregistration.treatment
    match treatment:
        case None | EnvironmentTreatment() | BinariesTreatment():
            return command
        case ArgumentTreatment():
            value = treatment.control if arm is Arm.CONTROL else treatment.candidate
            return (*command, *_option(treatment.argument, value))
        case _:
            assert_never(treatment)


def arm_environment(preregistration: Preregistration, arm: Arm) -> dict[str, str]:
    """The registered environment of an arm, as templates by name; the base environment is not in it."""
    environment = dict(preregistration.service.environment)
    treatment = preregistration.treatment
    if isinstance(treatment, EnvironmentTreatment):
        value = treatment.control if arm is Arm.CONTROL else treatment.candidate
        if value is not None:
            environment[treatment.environment] = value
    return environment


def arm_binaries(preregistration: Preregistration, arm: Arm) -> str | None:
    """The host profile's key of an arm's folder of compiled files; None where the arms do not differ in one."""
    treatment = preregistration.treatment
    if not isinstance(treatment, BinariesTreatment):
        return None
    return treatment.control if arm is Arm.CONTROL else treatment.candidate


def fill(template: Sequence[str], values: StartValues) -> tuple[str, ...]:
    """The template with every placeholder replaced by its value, once; values are never searched for placeholders."""
    return tuple(PLACEHOLDER.sub(lambda match: values.of(match[0]), part) for part in template)


def fill_environment(template: Mapping[str, str], values: StartValues) -> dict[str, str]:
    """The environment with every placeholder in a value replaced."""
    return dict(zip(template, fill(tuple(template.values()), values), strict=True))


def substitute_back(observed: Sequence[str], template: Sequence[str], values: StartValues) -> tuple[str, ...]:
    """The observed parts with per-start values replaced by placeholders: the template itself iff nothing else differs.

    A part that equals its filled template becomes the template, so that a literal which happens to equal a value
    (a port number elsewhere in the command) is no difference. In any other part each value becomes its placeholder,
    longest value first, so that two starts can be compared and the difference read.
    """
    filled = fill(template, values)
    return tuple(
        template[index] if index < len(filled) and part == filled[index] else _generic(part, values)
        for index, part in enumerate(observed)
    )


def substitute_back_environment(
    observed: Mapping[str, str], template: Mapping[str, str], values: StartValues
) -> dict[str, str]:
    """The same for an environment, name by name."""
    return {
        name: substitute_back((value,), (template[name],) if name in template else (), values)[0]
        for name, value in observed.items()
    }


def _option(name: str, value: str | Literal[True] | None) -> tuple[str, ...]:
    match value:
        case None:
            return ()
        case True:
            return (name,)
        case _:
            return (name, value)


def _generic(part: str, values: StartValues) -> str:
    # an observed placeholder is no value: left as it is, it would pass for the template that was never filled
    part = PLACEHOLDER.sub(lambda match: f"{{{match[0]}}}", part)
    names = {"{port}": str(values.port)}
    names |= {f"{{{name}}}": str(getattr(values, name)) for name in ("python", "host", "nonce", "leg_dir", "cache_dir")}
    names |= {f"{{model:{name}}}": path for name, path in values.models.items()}
    names |= {} if values.binaries is None else {"{binaries}": values.binaries}
    by_value = {value: placeholder for placeholder, value in names.items()}
    pattern = "|".join(re.escape(value) for value in sorted(by_value, key=len, reverse=True))
    return re.sub(pattern, lambda match: by_value[match[0]], part)
