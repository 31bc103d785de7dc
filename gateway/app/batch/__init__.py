"""`scrub`: files and folders through the same steps, without engine or receiver."""
