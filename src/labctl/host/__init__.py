"""What the machine is and whether it is idle."""
