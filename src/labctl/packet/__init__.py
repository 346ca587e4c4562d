"""Steps 2 and 3, freeze and review: from a `Preregistration` to a `ReviewedPacket`."""
