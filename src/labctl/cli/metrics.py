"""`labctl metrics`: what each number of a verdict means."""

from typing import Annotated

import typer

from labctl.cli import show

app = typer.Typer(help="Say what each metric means.", no_args_is_help=True, rich_markup_mode=None)
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]


@app.callback()
def metrics() -> None:
    """Say what each metric means."""


@app.command("list")
def list_metrics(json: Json = False) -> None:
    """List every metric with its unit and formula."""
    from labctl.records.metric_registry import METRICS

    if json:
        show.json_document([metric.described() for metric in METRICS])
        return
    width = max(len(metric.id) for metric in METRICS)
    for metric in METRICS:
        said = metric.described()
        show.line(f"{metric.id:<{width}}  {said['of']:<5}  {said['unit']}: {metric.formula}")


@app.command("show")
def show_metric(
    name: Annotated[str, typer.Argument(metavar="ID", help="The metric's id, as a verdict prints it.")],
    json: Json = False,
) -> None:
    """Show one metric: formula, unit, events, source and version."""
    from labctl.codes import Code
    from labctl.errors import Problem, Refused
    from labctl.records.metric_registry import METRICS, find_metric

    metric = find_metric(name)
    if metric is None:
        known = f"one of {', '.join(one.id for one in METRICS)}"
        raise Refused(Problem(Code.NOT_FOUND, "metric", known, name, "run `labctl metrics list`"))
    if json:
        show.json_document(metric.described())
        return
    for field, value in metric.described().items():
        show.line(f"{field}: {value}")
