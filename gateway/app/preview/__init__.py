"""`policy preview`: real files through a policy, before and after side by side, in a folder that goes again."""
