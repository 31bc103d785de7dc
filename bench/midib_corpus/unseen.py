"""The unseen half's names, places and clinical texts: written on 2026-11-30 before any cleaner saw them, then frozen.

The halves of `words` and `clinical` were looked at while the cleaner was mended, so a score on them says little. This
half shares no list with them; its phrases are in `unseen_phrases`. Whoever mends the cleaner for what is missed here
must say so beside the new score: the first one, `first_unseen` of `results/midib.json`, is the one that counts.
"""

from __future__ import annotations

from bench.midib_corpus.words import entries, names

FEMALE = names(
    "Agatha Bettina Clementine Dorothea Eugenia Francesca Gwyneth Hortense Isadora Josephine Katarzyna Lucinda "
    "Magdalena Nokomis Octavia Priyanka Rowena Soledad Thandiwe Ursula Verity Winifred Xiomara Yevgenia Zuleika Faith"
)
MALE = names(
    "Aloysius Benedikt Caspian Dashiell Evander Fyodor Giacomo Hamish Ivor Jebediah Kwabena Lachlan Mortimer Nathaniel "
    "Ottokar Prosper Roderick Stanislaw Torquil Ulysses Vaughn Wilberforce Yusuf Zebulon Chance Grant"
)
LAST = names(
    "Adeyemi Bergstrom Chatterjee Dunleavy Eisenhardt Fotheringay Gonzaga Hrabovsky Iturralde Jankowski Kuznetsova "
    "Llewellyn Mwangi Novotny Ostrander Pettigrew Quimby Rasmussen Stavropoulos Tregarthen Ueberroth Vasquez Wojcik "
    "Xanthopoulos Yamaguchi Zabriskie O'Malley McTavish Banks Cross Hand Foote Love Page Knight Payne Gray Bush Wells "
    "Swift Hurt Moody Gold Silver Banner Major Noble"
)
STREETS = entries(
    "Tanglewood Drive|Old Forge Road|Pheasant Run|Saltmarsh Lane|Granary Court|Wexford Avenue|Bluebell Close"
    "|Quarterdeck Way|Rosehip Crescent|Chapel Street|Weaver Street|Mulberry Terrace|Prospect Place|Ironbridge Road"
)
CITIES = entries(
    "Port Merrion|Ashcombe|Larchmont Ridge|Tolliver Springs|Nether Wickham|Saint Orens|Bellhaven|Cutler Bay Point"
    "|Drummond Hill|Esterville|Foxborough Mills|Gildersleeve"
)
HOSPITALS = entries(
    "Queen Adelaide Infirmary|St. Brendan's Hospital|Harrowgate District General|Mercy Hill Children's Hospital"
    "|Penhallow Oncology Centre|Blue Ridge Orthopaedic Clinic|Sacred Heart of Esterville|Klinikum Altenfels"
    "|Hospital San Telmo|Ospedale Santa Perpetua|Tri-County Veterans Medical Center|Northwick Diagnostics LLC"
)
WARDS = entries("Ward 7B|ICU 2 East|Maple Unit|Day Surgery|A&E Resus 3|Station 4a")
MAILS = names("hushmail.example mailbox.example fastpost.example")
FOREIGN = (
    ("ISO_IR 100", "Grönwall^Åsa"),
    ("ISO_IR 100", "D'Orléans^François"),
    ("ISO_IR 101", "Dvořák^Zdeněk"),
    ("ISO_IR 192", "Nguyễn^Thị Hạnh"),
    ("ISO_IR 192", "Şahin^Gülşen"),
    ("ISO_IR 126", "Παπαγιάννης^Σωκράτης"),
    ("ISO_IR 144", "Тимофеева^Людмила"),
    ("ISO 2022 IR 6\\ISO 2022 IR 87", "Kobayakawa^Shizuka=小早川^静香"),
    ("ISO 2022 IR 6\\ISO 2022 IR 149", "Seonwoo^Haneul=鮮于^하늘"),
    ("GB18030", "Ouyang^Ruoxi=欧阳^若曦"),
)
STUDIES = {
    "CR": entries(
        "CHEST 1 VIEW FRONTAL|XR FOREARM 2V RT|Clavicle bilateral|RX BACINO|BABYGRAM|Lat decub chest|SHUNT SERIES"
        "|TIB FIB LT"
    ),
    "CT": entries(
        "CT CAP WITH IV AND ORAL|CTPA r/o PE|CT TEMPORAL BONES|CT KUB STONE PROTOCOL|HRCT CHEST PRONE|CT C-SPINE TRAUMA"
        "|CT LIVER 4 PHASE|Cardiac CT calcium score|CT FACIAL BONES 3D|TC ADDOME COMPLETO"
    ),
    "DX": entries(
        "SCAPHOID SERIES RIGHT|Calcaneus axial|CHEST PA/LAT INSP EXP|TMJ OPEN CLOSED|Sacroiliac joints"
        "|BONE AGE LEFT HAND|Panorex|Sternum 2 views"
    ),
    "MG": entries(
        "SCREENING MAMMO W TOMO|Galactogram left|MAMMO POST CLIP PLACEMENT|6 month f/u right breast|Wire loc specimen"
    ),
    "MR": entries(
        "MRI IAC W/WO GAD|MR ARTHROGRAM SHOULDER|MRI C/T/L SPINE|FETAL MRI|MRCP with secretin|MR ENTEROGRAPHY W"
        "|MRI SELLA DYNAMIC|RM RODILLA IZQUIERDA|MRV HEAD|MRI BRACHIAL PLEXUS"
    ),
    "PT": entries(
        "PET/CT EYES TO THIGHS|DOTATATE PET|PET/CT LYMPHOMA INTERIM|FDG PET infection|Tau PET brain|PET MR PELVIS"
    ),
    "SR": entries("CT CAP WITH IV AND ORAL|SCREENING MAMMO W TOMO|Obstetric ultrasound|MRI SELLA DYNAMIC"),
    "US": entries(
        "US SCROTUM W DOPPLER|TVUS pelvis|FAST exam|US APPENDIX PEDS|LE VENOUS DUPLEX RT|Neonatal head ultrasound"
        "|US AORTA SCREEN|Hip sonogram infant"
    ),
}
SERIES = {
    "CR": entries("PA ERECT|LATERAL XTABLE|AP INT ROT|MORTISE|AXILLARY LAT|COMPARISON VIEW"),
    "CT": entries(
        "0.625 LUNG HR|AXIAL SOFT TISSUE 2.5|SAG REFORMAT 3MM|MIP COR 10MM|Delayed 10min|PE 1.0 Br36|ASiR-V 40% STND"
        "|Lung Nodule CAD Key Images|Scanogram AP|BONE ALGO|Smart Prep Series|4D perfusion MTT"
    ),
    "DX": entries("PA STANDING|LAT STANDING|OBL EXT|TUNNEL VIEW|MERCHANT|ULNAR DEV"),
    "MG": entries("RMLO|LCC TOMO SLICES|R LM MAG|L CV|RCC PUSHBACK"),
    "MR": entries(
        "SAG T1 TSE|AX PD FS|COR T2 HASTE BH|AX 3D SPGR DUAL ECHO|DIXON_W|DTI 64 DIR|SWI MAG|AX T2 BLADE|VIBE DYN 20S"
        "|MRE STIFFNESS MAP|FIESTA 3D IAC|RADIAL CINE SAX"
    ),
    "PT": entries("AC BODY 4.0|NAC CORRECTED NONE|FUSED COR|SUV 60MIN|LISTMODE FRAME 2"),
    "SR": entries("OB Worksheet|DOSE INFO|Key findings|Echo report"),
    "US": entries("TRANS BLADDER POST VOID|CW DOPPLER AV|M MODE FHR|SAG UTERUS|ELASTO|CFV COMPRESSION"),
}
PROTOCOLS = {
    "CR": entries("CHEST ROUTINE|UPPER EXTREMITY|Abdomen 2 pos"),
    "CT": entries("2.3 TRAUMA PAN SCAN|1.4 SINUS LOW DOSE|CARDIAC PROSPECTIVE|PEDS HEAD 0-2Y|RENAL MASS"),
    "DX": entries("Skeletal survey|Portable grid 8:1|Spine long"),
    "MG": entries("TOMO COMBO|BIOPSY PRONE|DIAGNOSTIC"),
    "MR": entries("KNEE ROUTINE 3T|EPILEPSY|PELVIS FEMALE|ABD MRCP RESP TRIG|STROKE FAST"),
    "PT": entries("ONC WB 90S/BED|NEURO STATIC|CARDIAC RB82 REST STRESS"),
    "SR": entries("Worksheet|Export"),
    "US": entries("MSK|OB 1st Trim|LE Venous|Pediatric Hip"),
}
HISTORIES = entries(
    """Dysphagia and hematemesis, evaluate for esophageal stricture|Post op day 3, increasing abdominal distension
Known sarcoidosis with worsening dyspnea|Bilateral knee pain worse on stairs, no trauma
Hematuria, flank pain, history of kidney stones|Elevated liver enzymes, obesity
MVC restrained driver, neck tenderness|New murmur, rule out endocarditis
Memory decline over two years|Palpable neck lump, ex smoker 40 pack years
Infertility workup|Febrile neutropenia, source unknown"""
)
ALERTS = entries(
    """Gadolinium reaction, hives|Aneurysm clip, check card|Combative when waking|Dialysis MWF|Latex allergy
Pregnant 2nd trimester|Insulin pump, remove before scan|Hard of hearing"""
)
FINDINGS = entries(
    """The common bile duct measures 7 mm|Trace bilateral effusions with compressive atelectasis
No evidence of acute fracture or dislocation|Multiple cysts in both kidneys, Bosniak 1
Disc desiccation at L4-L5 with mild canal narrowing|Ejection fraction is estimated at 55 percent
Fatty replacement of the pancreas|Opacification of the left maxillary sinus
Single live intrauterine pregnancy|Cortical thinning of the distal radius"""
)
ADVICE = entries(
    """Recommend ultrasound in 12 months|Consider MRI for further characterization|Surgical consultation suggested
Return to screening|Repeat with full bladder|Endoscopy is advised"""
)
AGENTS = entries("OPTIRAY 350 95ML|Gadavist 7.5|PROHANCE|Isovue-370|Eovist 10 mL|Water only|Definity 1.3ml")
DIAGNOSES = entries(
    """Nephrolithiasis|Crohn disease of small intestine|Subdural hematoma|Rotator cuff tear|Pulmonary embolism
Ovarian cyst|Chronic sinusitis|Aortic stenosis"""
)
COMMENTS = entries(
    """Best images possible|Could not lie flat|Jewelry artifact right ear|Coil 2 failed, switched|Sedated
Repeat for clipping"""
)
COMMON = """
Manufacturer 2 Canon Medical Systems|UIH|Hitachi Medical Corporation|ESAOTE|Samsung Electronics|Carestream Health|KONICA MINOLTA
ManufacturerModelName 3 Aquilion Prime SP|uMI 780|Oasis|G-scan Brio|GC85A|DRX-Evolution|AeroDR
SoftwareVersions 3 V8.9SP0003|R002|7.1.0.3|4.0.1b\\4.0.1c|1.21R|uWS-MI:R001
BodyPartExamined 3 CSPINE|KNEE|LIVER|PROSTATE|HEART|SKULL|HAND
SeriesNumber 2 6|7|11|102|4001
AcquisitionNumber 2 1|4|7
PatientSize 3 1.55|1.68|1.91
PatientWeight 3 48|66.3|101.2
EthnicGroup 3 OTHER|UNKNOWN|ASIAN
SmokingStatus 3 NO|YES|UNKNOWN
QualityControlImage 3 NO
PresentationIntentType 3 FOR PRESENTATION
"""  # noqa: E501
# Free text that not every generator fills: all of it may go, what is planted in it must.
MORE_PLACES = (
    *("RequestedProcedureComments", "ImagingServiceRequestComments", "CommentsOnThePerformedProcedureStep"),
    *("VisitComments", "SpecialNeeds", "PatientState", "AcquisitionComments", "RequestingService"),
)
# A vendor whom no list knows.
VENDOR = (0x0077, "ZEPHYR CLINICAL LAB 2")
