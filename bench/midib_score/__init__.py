"""The validator: judges cleaned files by an answer key as MIDI-B does. Knows pydicom and the key, nothing else."""
