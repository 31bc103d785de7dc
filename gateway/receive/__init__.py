"""The door: a storage SCP that keeps what allowed peers send, exactly as sent; success is answered when it is on disk.

    receiver     the port, the threads, the limits
    peers        who may associate (PS3.8 9.3.4 reasons for who may not)
    contexts     which SOP classes and transfer syntaxes are accepted
    pdus         association PDUs, by pynetdicom; answers, by struct
    wire         socket to reused buffer: timeouts, TCP_NODELAY, TCP_QUICKACK
    association  one connection, from A-ASSOCIATE-RQ to its end
    messages     requests and answers within an association
    commands     command sets (PS3.7 Annex E)
    arrival      one object: .part, fsync, kept, and only then success
    keeping      folder sync and commit shared by what arrives together
    identity     Study and SOP Instance UID out of a received data set
    stow         the same by DICOMweb: who may, which requests, answers; stow_parts, part10: what is in them

Nothing here decodes pixels, and nothing a peer writes becomes a path.
"""

from gateway.receive.receiver import Receiver

__all__ = ["Receiver"]
