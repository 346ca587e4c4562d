"""What runs a server: its command, its process, its readiness, and the embedded endpoint."""
