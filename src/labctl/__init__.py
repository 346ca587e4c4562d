"""labctl: preregistered, one-shot, sealed experiment campaigns for LLM-inference optimisation."""

__version__ = "0.1.0"
