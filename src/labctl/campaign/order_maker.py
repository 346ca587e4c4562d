"""Work orders of any kind of campaign, one leg after the other."""

from collections.abc import Callable
from typing import assert_never

from labctl.campaign.card_orders import CardPlan, make_card_order, open_card_ground
from labctl.campaign.orders import OrderPlan, make_order
from labctl.marker import ConsumedPacket
from labctl.records.any_order import AnyOrder
from labctl.rundir import LegPaths, RunPaths

OrderMaker = Callable[[int, LegPaths], AnyOrder]
"""Takes a leg's place in the order, from 1, and its folder inside the run."""


def order_maker(consumed: ConsumedPacket, paths: RunPaths, plan: OrderPlan | CardPlan) -> OrderMaker:
    """What makes the work orders of a run; for a campaign on cards, the cards are found first.

    Raises:
        LabctlError: a card is not there any more, or something could not be written.
    """
    match plan:
        case OrderPlan():
            return lambda index, files: make_order(consumed, index, files, plan)
        case CardPlan():
            ground = open_card_ground(consumed, paths, plan)
            return lambda index, files: make_card_order(index, files, ground)
        case _:
            assert_never(plan)
