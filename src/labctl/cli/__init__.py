"""The command line: parse, call one step or the pipeline, show, exit."""
