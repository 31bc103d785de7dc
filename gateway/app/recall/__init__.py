"""What left and should come back, or leave anew: receivers, manifests, rejection notes, re-issue."""
