"""The sentences of the conformance statement. What they say is what the code does; change both together."""

BEFORE_AFTER = "What happens to each attribute at every level of nesting. Annexes A and B list them one by one."
THIS_POLICY = "This statement holds for objects that were de-identified under exactly this policy digest."
ROLE = "The gateway acts as a De-identifier. It does not act as a Re-identifier."
CLAIMS = (
    "Full and modified dates are never claimed together. An option that was not carried out on an object is not "
    "recorded in it."
)
UIDS_STAY = "Instance UIDs stay as they are (Retain UIDs Option)."
UIDS_REPLACED = (
    "Every UID that names an instance or entity is replaced by one under 2.25, made with a keyed HMAC-SHA256 of "
    "the original UID: equal originals get equal replacements, in references, kept private attributes and file "
    "meta information too."
)
UIDS_OF_DICOM = (
    "UIDs that DICOM itself defines (SOP classes, transfer syntaxes, coding schemes, well-known frames of "
    "reference) are not changed."
)
SCOPE = (
    "Scope: what is made from the key is the same for all objects, studies, days, processes and runs of one "
    "project as long as its key is the same, and differs between projects. Who does not hold the key can compute "
    "no replacement from a value, and no value from a replacement."
)
DATES_SHIFTED = (
    "All dates of a patient move by the same whole number of days, drawn from the project's key between {low} and "
    "{high}, never 0: DA and DT of the standard, of content items and of kept private attributes. Times of day, "
    "precision, fractions and time zones stay, so that intervals are exact to the second."
)
DATES_UNREADABLE = "A value that cannot be read as a date or time is treated as in the Basic Profile."
DATES_STAY = "Dates and times stay as they are."
DATES_GO = "Dates and times are removed, emptied or replaced by one fixed moment, as the Type demands."
CHARACTERISTICS_STAY = (
    "Characteristics that Table E.1-1 names for the option stay; those that are text are cleaned as descriptions are."
)
CHARACTERISTICS_GO = "Characteristics are treated as in the Basic Profile."
AGES = "Ages above 89 years are written as 090Y wherever an age stays."
TEXT_GOES = (
    "The Clean Descriptors Option is not used: free text is treated as in the Basic Profile, and removed where "
    "the table does not list it, but for technical terms that Annex B shows as kept."
)
TEXT_CLEANED = (
    "Free text stays after masking, in three steps: names, numbers, dates and places that stand in the object's "
    "other attributes, in any order and spelling; whatever has the form of a date, telephone number, address, URL "
    "or record number; and every word that is not in a list of technical words."
)
TEXT_LIST = "The list ships with the product and is part of the digest of the tables; the site added {own} words."
TEXT_MASK = "What is masked leaves no mark. Text of which nothing is left is treated as in the Basic Profile."
PIXELS = (
    "Icon images are removed. Overlays and curves are removed; an object that hides an overlay in unused bits of "
    "its pixel data is held. Where no stage changes them, pixel data leave as the bytes that came."
)
ENCRYPTED = (
    "No Encrypted Attributes Sequence (0400,0500) is written: no attribute is in an encrypted data set, no "
    "transfer syntax is used for one, and there is no key to select. One that is in the original is removed."
)
NOTHING_BACK = "Nothing inside or beside the objects leads back to the person."
CHARACTER_SETS = (
    "Specific Character Set (0008,0005) stays. Replacement values are of the default repertoire, which every "
    "character set contains. Cleaned text is written in the character set of its data set, or treated as in the "
    "Basic Profile where that cannot hold it."
)
VERIFIED = (
    "Objects are judged after de-identification, on the bytes that would leave, by code that shares nothing with "
    "the code that made them. A study that does not pass is held for a person."
)
MINIMUM = (
    "The table is a minimum (note to PS3.15 E.1.1). What it does not list is decided by value representation: "
    "UIDs are replaced, names emptied, dates and times treated by the date options, addresses and free text "
    "removed or cleaned. Removed whatever their value representation: {removed}."
)
TECHNICAL = "{count} attributes that hold codes, numbers or bulk data stay, and sequences are entered."
NOT_IN_DICTIONARY = "Attributes of the table that this version's dictionary lacks are removed: {tags}."
CLASSES = "{count} storage SOP classes are de-identified, retired ones among them."
NO_IDENTITY = (
    "Objects without Patient ID, Study, Series or SOP Instance UID, and objects that cannot be read to their end: held."
)
SYNTAXES = (
    "The header is de-identified in these transfer syntaxes and leaves in the one it came in; a pixel stage of "
    "the policy may write another one."
)
SYNTAXES_HELD = "Held, because their data sets cannot be cleaned here:"
DUMMIES = (
    "An empty value stays empty. Code sequences are replaced by one item (REMOVED, 99DEID). Patient's Name at the "
    "top level is the pseudonym of the Patient ID; UIDs follow the section on referential integrity."
)
PRIVATE_GOES = "Every private attribute is removed, with its Private Creator."
PRIVATE_STAYS = (
    "A private attribute stays when one of the lists below names it by Private Creator, group and element, "
    "together with its Private Creator. Its value is judged all the same: UIDs are replaced, dates follow the "
    "date options, names go, sequences are entered and each element in them is judged, numbers must be numbers, "
    "bulk data and long text go unless the site's own list names them. What the sender declares safe (0008,0300) "
    "is not believed."
)
TCIA = (
    "TCIA's dispositions (2024-02-01) are followed; where they and Table E.3.10-1 differ, they count. The list is "
    "the file tcia_private_2024.csv of the product."
)
META = (
    "The preamble is zeros. The file meta information is written anew and names this product only: no AE titles, "
    "no presentation addresses, no private information."
)
