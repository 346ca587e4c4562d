"""A work order of any kind."""

from labctl.codes import Code
from labctl.errors import MalformedRecord, Problem
from labctl.frozen import strict_json
from labctl.records.card_order import ComponentOrder, ProbeOrder
from labctl.records.order import WorkOrder

AnyOrder = WorkOrder | ComponentOrder | ProbeOrder
_KINDS: dict[object, type[AnyOrder]] = {"endpoint": WorkOrder, "component": ComponentOrder, "probe": ProbeOrder}


def read_order(data: bytes, where: str) -> AnyOrder:
    """A work order from its bytes.

    Raises:
        MalformedRecord: the bytes are no order in one of the three strict formats.
    """
    document = strict_json(data, where)
    kind = document.get("kind") if isinstance(document, dict) else None
    if kind not in _KINDS:
        do = "restore the file as labctl wrote it"
        expected = f"an order of kind {', '.join(map(str, _KINDS))}"
        raise MalformedRecord(Problem(Code.RECORD_FORM, where, expected, repr(kind)[:80], do))
    return _KINDS[kind].from_json(data, where)
