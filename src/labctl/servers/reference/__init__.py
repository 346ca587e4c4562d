"""The embedded endpoint: a small exact decoder behind a subset of vLLM's HTTP surface, to rehearse campaigns anywhere.

It is a stand-in for an engine and is never presented as a language model: its weights are seeded integers with a few
hand-built attention heads, and what it writes means nothing. What is real is the work: every token is computed by a
decoder with attention over a key-value cache, drafts are verified in one batched step, and tokens leave as they come.
"""
