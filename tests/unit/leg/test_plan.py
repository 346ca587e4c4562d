import json
from pathlib import Path

import pytest

from labctl.leg.plan import ready_plan, served_name, session_plan
from labctl.prereg.model import Api
from labctl.prereg.suite import Message, Prompt
from tests.fakes.leg import NONCE, LegPlace


def test_each_prompt_is_asked_once_in_order(tmp_path: Path) -> None:
    order = LegPlace(tmp_path, 8123).order()
    plan = session_plan(order, "the-model")
    assert [request.prompt_id for request in plan.requests] == ["p1", "p2", "p3"]
    assert (plan.path, plan.metrics_path, plan.port) == ("/v1/completions", "/metrics", 8123)
    body = json.loads(plan.requests[0].body)
    assert (body["model"], body["prompt"], body["max_tokens"], body["seed"]) == ("the-model", "Once upon", 4, 1)
    assert plan.limits.total_s == order.limits.request_timeout_s
    assert plan.limits.response_bytes == order.limits.response_limit_bytes


def test_a_chat_order_asks_messages(tmp_path: Path) -> None:
    order = LegPlace(tmp_path, 8123).order()
    prompt = Prompt(id="p1", messages=(Message(role="user", content="Hello"),))
    requests = order.requests.model_copy(update={"api": Api.CHAT, "prompts": (prompt,)})
    plan = session_plan(LegPlace(tmp_path, 8123).order(requests=requests), "the-model")
    assert plan.path == "/v1/chat/completions"
    assert json.loads(plan.requests[0].body)["messages"] == [{"role": "user", "content": "Hello"}]


def test_the_served_name_must_be_the_one_of_the_command(tmp_path: Path) -> None:
    assert ready_plan(LegPlace(tmp_path, 8123).order()).served_name == f"labctl-{NONCE}"


@pytest.mark.parametrize(
    ("argv", "name"),
    [
        (("serve", "--name", "a"), "a"),
        (("serve", "--name=a"), "a"),
        (("serve", "--name", "a", "--name=b"), "b"),
        (("serve", "--name"), None),
        (("serve", "--names", "a"), None),
        ((), None),
    ],
)
def test_the_value_of_an_option_is_found_in_both_forms(argv: tuple[str, ...], name: str | None) -> None:
    assert served_name(argv, "--name") == name
