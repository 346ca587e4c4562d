"""Running an endpoint leg: what a work order means for readiness and for measuring; pure."""

from typing import assert_never

from labctl.measure.session import PlannedRequest, SessionPlan
from labctl.measure.wire import RowLimits
from labctl.prereg.model import Api
from labctl.prereg.suite import Prompt
from labctl.records.order import WorkOrder
from labctl.records.requests import Generation, request_body
from labctl.servers.readiness import ReadyPlan


def ready_plan(order: WorkOrder) -> ReadyPlan:
    """Where to ask whether the server is ready."""
    return ReadyPlan(
        address=order.address,
        port=order.port,
        endpoints=order.engine.endpoints,
        timeout_s=order.limits.ready_timeout_s,
        served_name=served_name(order.argv, order.engine.served_name_option),
    )


def session_plan(order: WorkOrder, served_model: str) -> SessionPlan:
    """What the server is asked, in order."""
    requests, limits = order.requests, order.limits
    generation = Generation(
        model=served_model, max_tokens=requests.max_tokens, seed=requests.seed, ignore_eos=requests.ignore_eos
    )
    timeout_s = float(limits.request_timeout_s)
    return SessionPlan(
        host=order.address,
        port=order.port,
        path=_path(order),
        metrics_path=order.engine.endpoints.metrics,
        limits=RowLimits(read_s=timeout_s, total_s=timeout_s, response_bytes=limits.response_limit_bytes),
        requests=tuple(_planned(prompt, generation, requests.api) for prompt in requests.prompts),
    )


def served_name(argv: tuple[str, ...], option: str) -> str | None:
    """The value of an option in an argument list, in either of its two forms; the last one counts, as for servers."""
    found = None
    for place, argument in enumerate(argv):
        if argument == option and place + 1 < len(argv):
            found = argv[place + 1]
        elif argument.startswith(f"{option}="):
            found = argument.removeprefix(f"{option}=")
    return found


def _path(order: WorkOrder) -> str:
    match order.requests.api:
        case Api.COMPLETIONS:
            return order.engine.endpoints.completions
        case Api.CHAT:
            return order.engine.endpoints.chat
        case _:
            assert_never(order.requests.api)


def _planned(prompt: Prompt, generation: Generation, api: Api) -> PlannedRequest:
    if api is Api.CHAT:
        messages = [message.model_dump(mode="json") for message in prompt.messages or ()]
        return PlannedRequest(prompt_id=prompt.id, body=request_body(generation, messages))
    return PlannedRequest(prompt_id=prompt.id, body=request_body(generation, prompt.text or ""))
