"""Step 1, preregister: from a YAML file to a `Preregistration`."""
