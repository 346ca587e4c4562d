"""Calling something while work is being captured: by a device graph, or by torch.jit's tracer where there are none."""

import warnings
from collections.abc import Callable
from types import TracebackType
from typing import Any

import torch

Body = Callable[[], None]
Look = dict[str, bool]


class Caught:
    """A context that keeps the exception that ends it, such as a refusal that was asked for."""

    def __init__(self) -> None:
        self.error: Exception | None = None

    def __enter__(self) -> "Caught":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        self.error = error if isinstance(error, Exception) else None
        return self.error is not None


class Capture:
    """One call under capture, with what was seen before, during and after it."""

    def __init__(self, device: torch.device, operands: tuple[int, int]) -> None:
        self._device = device
        self._operand, self._replay_operand = operands

    def run(self, body: Body) -> dict[str, Any]:
        """Capture a sum and the call, then replay the sum with another operand."""
        looks: list[Look] = [look(self._device)]
        caught = Caught()

        def captured_body() -> None:
            looks.append(look(self._device))
            with caught:
                body()

        condition, sums = self._captured(captured_body)
        looks.append(look(self._device))
        return {
            "condition": condition,
            **dict(zip(("before", "during", "after"), looks, strict=True)),
            "exception": type(caught.error).__qualname__ if caught.error else None,
            "message": str(caught.error) if caught.error else None,
            "canary": {
                "operand": self._operand,
                "captured": sums[0],
                "replay_operand": self._replay_operand,
                "replayed": sums[1],
            },
        }

    def _captured(self, body: Body) -> tuple[str, tuple[int, int]]:
        match self._device.type:
            case "cuda":
                return "cuda_graph", self._graph(body, torch.cuda.CUDAGraph, torch.cuda.graph)
            case "xpu":
                return "xpu_graph", self._graph(body, torch.xpu.XPUGraph, torch.xpu.graph)
            case _:
                return "jit_trace", self._trace(body)

    def _graph(self, body: Body, new_graph: Callable[[], Any], scope: Callable[[Any], Any]) -> tuple[int, int]:
        operand = torch.tensor(self._operand, device=self._device)
        graph = new_graph()
        with scope(graph):
            total = operand + 1
            body()
        graph.replay()
        captured = int(total.item())
        operand.fill_(self._replay_operand)
        graph.replay()
        return captured, int(total.item())

    def _trace(self, body: Body) -> tuple[int, int]:
        totals = []

        def traced(operand: torch.Tensor) -> torch.Tensor:
            total = operand + 1
            totals.append(total.clone())
            body()
            return total

        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="`torch.jit.trace", category=DeprecationWarning)
            tracer: Any = torch.jit
            program = tracer.trace(traced, (torch.tensor(self._operand),), check_trace=False)
        return int(totals[0]), int(program(torch.tensor(self._replay_operand)))


def look(device: torch.device) -> Look:
    """Whether work is being captured now, by the public function and by the machinery beneath it."""
    machinery: Any = torch._C  # noqa: SLF001 (the second way of asking: a worker may have replaced the public one)
    tracer: Any = torch.jit
    match device.type:
        case "cuda":
            state = machinery._cuda_isCurrentStreamCapturing  # noqa: SLF001 (see above)
            return _looks(torch.cuda.is_current_stream_capturing, state)
        case "xpu":
            state = machinery._xpu_isCurrentStreamCapturing  # noqa: SLF001 (see above)
            return _looks(torch.xpu.is_current_stream_capturing, state)
        case _:
            state = machinery._get_tracing_state  # noqa: SLF001 (see above)
            return _looks(tracer.is_tracing, lambda: state() is not None)


def _looks(asked: Callable[[], Any], state: Callable[[], Any]) -> Look:
    return {"asked": bool(asked()), "state": bool(state())}
