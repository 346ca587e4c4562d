"""Judges component runs: one worker process a card, a control path held against a candidate on raw bits."""
