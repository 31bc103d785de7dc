"""The fresh half's names, places and clinical texts: written on 2026-11-30, after the unseen half's misses were mended
and before any cleaner saw them, then frozen. Its phrases are in `fresh_phrases`.

Texts follow what ordering guides, protocol books and worklists of several countries show. It shares no list with the
other halves. The first score is `first_fresh` of `results/midib.json`; whoever mends the cleaner for what is missed
here says so beside the new one.
"""

from __future__ import annotations

from bench.midib_corpus.words import entries, names

FEMALE = names(
    "Adelheid Brunhilde Chiara Delphine Esperanza Fenella Giovanna Harriet Iphigenia Jacinta Keiko Lakshmi Maeve "
    "Natsuko Ophelia Perpetua Quiteria Rosamund Sunniva Tatiana Undine Valeria Wilhelmina Ximena Yasmin Zofia Joy Dawn"
)
MALE = names(
    "Anselm Bertrand Cuthbert Dmitri Ezekiel Fabrizio Gregor Hezekiah Ignacio Joaquin Konstantin Leander Montgomery "
    "Nikolai Obadiah Peregrine Raghunath Sebastian Tancredi Umberto Valentin Werner Xavier Yannick Zachariah Bill Mark"
)
LAST = names(
    "Abubakar Breckenridge Cholmondeley Desrosiers Echeverria Fairweather Guillemot Haverkamp Ilyushin Jorgensen "
    "Krishnamurthy Lovelace Mazzantini Ndiaye Offenbach Przybylski Quattrocchi Rosenthal Siddiqui Tchaikovsky Uchida "
    "Vandenberg Wolstenholme Xiang Yeats Zimmermann O'Donoghue MacAllister Bird Castle Carpenter Walker Peacock Rice "
    "Wolf Temple Head Legg Mann Little Good Early Forrest Waters Drummer Weller Gale Vane Porter Cook"
)
STREETS = entries(
    "Hawthorn Hill|Cobbler Lane|Ferry Landing Road|Jackdaw Drive|Maltings Close|Vineyard Avenue|Windmill Parade"
    "|Stonecutter Street|Almond Court|Greyfriars Walk|Kestrel Boulevard|Tannery Row|Lime Kiln Way|Priory Gardens"
)
CITIES = entries(
    "Aldermere|Port Sorrel|Holloway Springs|New Brampford|Castle Dunning|Wexcombe|Riverton Heights|Marlow Junction"
    "|San Cipriano|Little Hadham|Oxbridge Falls|Thornaby Cross"
)
HOSPITALS = entries(
    "Royal Aldermere Infirmary|St. Winnow Children's Hospital|Lakeview Orthopedic Associates|Hopital Sainte-Ludivine"
    "|Klinikum Wolfsburg-Nord|Good Shepherd Medical Centre|Palmetto Bay Surgical Center|Hospital Clinico Del Valle"
    "|Harrison County General|Evergreen Womens Imaging|Casa di Cura Villa Serena|North Fork Veterans Hospital"
)
WARDS = entries("Acute Stroke Unit|Rm 2204|SDU|Ward C3|PACU bay 4|Burns Unit")
MAILS = names("quickmail.example letterbox.example dispatch.example")
FOREIGN = (
    ("ISO_IR 100", "Björklund^Märta"),
    ("ISO_IR 100", "Peña^Íñigo"),
    ("ISO_IR 101", "Őrsi^Zsófia"),
    ("ISO_IR 192", "Trịnh^Quốc Bảo"),
    ("ISO_IR 192", "Çelik^Özgür"),
    ("ISO_IR 126", "Καραμανλής^Θεόδωρος"),
    ("ISO_IR 144", "Щербакова^Юлия"),
    ("ISO 2022 IR 6\\ISO 2022 IR 87", "Hasegawa^Minoru=長谷川^実"),
    ("ISO 2022 IR 6\\ISO 2022 IR 149", "Namgung^Boram=南宮^보람"),
    ("GB18030", "Zhuge^Mingyue=诸葛^明月"),
)
STUDIES = {
    "CR": entries(
        "XR ACUTE ABDOMEN SERIES|CHEST PORT POST LINE|Orbits foreign body screen|Rx tobillo derecho|SCOLIOSIS STANDING"
        "|Thorax im Bett|HUMERUS 2 OR MORE VIEWS LT|NG TUBE PLACEMENT"
    ),
    "CT": entries(
        "CT MAXILLOFACIAL W/O DYE|CT ABD/PEL W ORAL & IV DYE|CT ANGIO BRAIN AND NECK|CT ENTEROGRAPHY"
        "|CT SOFT TISSUE NECK|Low dose CT renal colic|CT EXTREMITY LOWER RT|CT pulmonary veins pre ablation"
        "|Scanner cerebral sans injection|CT TRAUMA PAN-SCAN"
    ),
    "DX": entries(
        "XR KNEE BILAT SUNRISE|Finger third digit left|FOOT COMPLETE MIN 3V|Skull Towne|XR SPINE ENTIRE"
        "|Acromioclavicular|BARIUM SWALLOW|Os calcis"
    ),
    "MG": entries(
        "MAM DIGITAL DIAGNOSTIC BILAT|Implant screening 3D|RECALL LEFT ASYMMETRY|MG NEEDLE LOCALIZATION|Annual mammo"
    ),
    "MR": entries(
        "MRI ORBITS W/O & W DYE|MRA RENAL ARTERIES|MR PELVIS ENDOMETRIOSIS|MRI TMJ BILATERAL|MR UROGRAM|MRI WRIST TFCC"
        "|MRI CERVICAL SPINE METS SURVEY|RMN CEREBRAL|MRI CARDIAC SARCOID|MRI FOOT MORTON NEUROMA"
    ),
    "PT": entries(
        "PET CT SKULL TO THIGH RESTAGE|PYLARIFY PSMA|NETSPOT PET|PET MYOCARDIAL VIABILITY|FDG BRAIN EPILEPSY"
        "|AMYVID BRAIN"
    ),
    "SR": entries("CT ENTEROGRAPHY|MAM DIGITAL DIAGNOSTIC BILAT|Fetal anatomy scan|MRI WRIST TFCC"),
    "US": entries(
        "US RUQ GALLBLADDER|Renal transplant doppler|US GUIDED PARACENTESIS|NUCHAL TRANSLUCENCY|Testicular torsion r/o"
        "|US HEAD PREMATURE INFANT|AV FISTULA MAPPING|Thyroid FNA"
    ),
}
SERIES = {
    "CR": entries("FRONTAL SUPINE|SWIMMERS|JUDET VIEW|DECUBITUS|BRODEN 30|FLEXION"),
    "CT": entries(
        "1.0 mm Axial Bone Hr60|CORONAL REFORMATS|VENOUS 70s|TRIPLE RULE OUT|WITHOUT 5MM STD|Bolus Tracking"
        "|THORAX INSP 1.25|LIVER ART PHASE THIN|DE_MIXED 0.6|Patient Summary|iDose 4 YA|PREMONITORING"
    ),
    "DX": entries("STENVERS|LOWER HALF|ROSENBERG|SKIER VIEW|UPRIGHT GRID|BENDING LEFT"),
    "MG": entries("LMLO TOMO HD|RCC ID|L ROLLED MEDIAL|RXCCM|MAG 1.8 LCC"),
    "MR": entries(
        "AXIAL HASTE FATSAT|COR TRUFISP|T1 SPACE POST SAG|SS FSE HEAVY T2|FLAIR FS 3D CUBE|CINE 4CH|PSIR MAG|ADC 0-800"
        "|AX T2 MEDIC|STAGE QSM|LAVA WATER 5MIN|T1 INPHASE OPPOSED"
    ),
    "PT": entries("CTAC 3.75 THK|PET STATIC EMISSION|SCATTER PROFILE|GATED STRESS|FRAME 12 DYNAMIC"),
    "SR": entries("Exam Protocol SR|Biometry|Lesion tracker|Patient dose summary"),
    "US": entries("LIVER RT LOBE TRV|SPLENIC VEIN WAVEFORM|PENNATION|RT CALF AUGMENT|CINE SWEEP|CRL 8W"),
}
PROTOCOLS = {
    "CR": entries("Lower limb 3 views|MOBILE CHEST|Facial"),
    "CT": entries("8.2 ABDOMEN BIPHASIC|Dissection gated|NECK SPLIT BOLUS|EXTREMITY METAL|INFANT THORAX 80KV"),
    "DX": entries("Bucky upright|Babix|Leg length"),
    "MG": entries("SPECIMEN|ROUTINE 4 VIEW|TOMO PLUS SYNTH"),
    "MR": entries("MS FOLLOW UP BRAIN|PROSTATE PIRADS V2|HIP LABRUM|LIVER PRIMOVIST DELAY|HEAD AND NECK TUMOUR"),
    "PT": entries("FDG 60 UPTAKE|RENAL LASIX|ONCO HIGH BMI"),
    "SR": entries("Template 5000|Summary"),
    "US": entries("CAROTID BILAT|Second trimester|Breast axilla"),
}
HISTORIES = entries(
    """Occult GI bleeding, anemia, colonoscopy incomplete|Tinnitus and vertigo on the right for one year
Proptosis, known thyroid eye disease|Jaundice with itching, abnormal alkaline phosphatase
Night sweats, swollen groin nodes|Crush injury to forearm at work, gross deformity
Recurrent miscarriages, possible septate uterus|Kidney donor evaluation, otherwise healthy
Gunshot wound thigh, pulses diminished|Delayed milestones, squint, born at 29 weeks
Worst headache of life while gardening|Nonhealing heel ulcer, rule out osteomyelitis"""
)
ALERTS = entries(
    """Peanut anaphylaxis|Refused contrast last visit|Breastfeeding|Port-a-cath accessed
Blind in left eye, escort needed|Vomits easily, antiemetic given|Neurostimulator off before scan|Do not lay flat"""
)
FINDINGS = entries(
    """Hyperdense cyst arising from the lower pole, unchanged|The bowel gas pattern is nonobstructive
Bilateral ovaries are obscured by overlying shadow|Tiny hiatal hernia noted incidentally
Loss of lordosis likely due to spasm|Enlarged cardiac silhouette with cephalization
Well circumscribed fatty mass consistent with lipoma|The appendix is visualized and tapers normally
Moderate stool burden throughout|Subchondral edema along the lateral femoral condyle"""
)
ADVICE = entries(
    """Suggest dedicated pancreatic protocol|No follow up is necessary|Correlate with tumor markers
Orthopedic referral is warranted|Recommend colonoscopy if not recently done|Rescan after gas has cleared"""
)
AGENTS = entries("VISTIDE 320 80CC|Clariscan|Magnevist 0.2 mL/kg|Readi-Cat 2|Lumason 2 ml|Barium thin|Optison")
DIAGNOSES = entries(
    """Ankylosing spondylitis|Carpal tunnel syndrome|Acute cholecystitis|Endometriosis|Parkinsonism
Pyelonephritis|Torn anterior cruciate ligament|Sickle cell crisis"""
)
COMMENTS = entries(
    """Scan aborted after scout|Would not hold still|Metal hip, extra views|IV blew, restarted left wrist|Great effort
Table limit reached"""
)
COMMON = """
Manufacturer 2 Neusoft Medical Systems|FUJIFILM Corporation|AGFA|Mindray|SIEMENS HEALTHINEERS|Planmeca|Swissray
ManufacturerModelName 3 NeuViz 128|FDR D-EVO III|MAGNETOM Lumina|Resona 7|Vantage Orian|Revolution Apex|DX-D 300
SoftwareVersions 3 syngo MR XA31|V5.00-ST003|29.1_R04|E11\\2.0.1|MX_4.2b|NMS_NAE201_V0.7
BodyPartExamined 3 TSPINE|FOOT|PANCREAS|UTERUS|ORBIT|HUMERUS|NECK
SeriesNumber 2 3|9|14|205|8001
AcquisitionNumber 2 2|5|9
PatientSize 3 1.49|1.73|1.88
PatientWeight 3 52.4|70|118
EthnicGroup 3 HISPANIC|DECLINED|WHITE
SmokingStatus 3 NO|YES|UNKNOWN
QualityControlImage 3 NO
PresentationIntentType 3 FOR PRESENTATION
"""
# Free text that not every generator fills: all of it may go, what is planted in it must.
MORE_PLACES = (
    *("RequestedProcedureComments", "ImagingServiceRequestComments", "CommentsOnThePerformedProcedureStep"),
    *("VisitComments", "SpecialNeeds", "PatientState", "AcquisitionComments", "ReasonForVisit"),
)
# A vendor whom no list knows.
VENDOR = (0x0083, "ORIEL IMAGING WORKS 1")
