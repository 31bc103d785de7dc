"""What technologists and referrers write, by modality: text without identity, of which not one word may be lost.

Vendors' and sites' styles, abbreviations and languages mixed, as public collections show them. Entries stand between
bars and line ends. Every list is halved by `Words.of`: what one half is improved on, the other is scored on.
"""

from __future__ import annotations

from bench.midib_corpus.words import entries

STUDIES = {
    "CR": entries(
        """CHEST AP PORTABLE|XR CHEST 2 VIEWS|Thorax a.p. liegend|ABDOMEN KUB|Knee 3 views left|PELVIS AP
RX TORAX PA Y LATERAL|HAND LT 3V|SKULL AP LAT|Lumbar spine 4 views|RIBS UNILATERAL W CHEST
Foot weight bearing RT"""
    ),
    "CT": entries(
        """CT CHEST W/O CONTRAST|CT ABDOMEN PELVIS W CONTRAST|CT Head wo|CTA NECK AND CAROTIDS|CT COLONOGRAPHY SCREENING
Thorax^1_ROUTINE (Adult)|TK miednicy|CT LOW DOSE LUNG SCREENING|Abdomen^02_ABD_PEL_ROUTINE (Adult)
CT ANGIO AORTA RUNOFF|TC TORACE CON MDC|CT SINUS LIMITED"""
    ),
    "DX": entries(
        """XR CHEST PA AND LATERAL|DX SHOULDER RIGHT|CHEST 2V|Thorax dorsoventral|XR HIP WITH PELVIS LEFT
SPINE CERVICAL 5 VIEWS|RADIOGRAPHIE DU THORAX|Elbow complete|XR ABDOMEN 2 VIEWS SUPINE ERECT
Ankle RT min 3 views|CHEST PORT|Wrist LT"""
    ),
    "MG": entries(
        """MAMMOGRAM SCREENING BILATERAL|MAMMO DIAGNOSTIC LEFT|DIGITAL MAMMOGRAPHY SCREENING|Mammographie beidseits
BILATERAL SCREENING TOMOSYNTHESIS|MG UNILATERAL W CAD|Mammography additional views|BREAST SPECIMEN"""
    ),
    "MR": entries(
        """MRI BRAIN W WO CONTRAST|MR PROSTATE MULTIPARAMETRIC|MRI LUMBAR SPINE WITHOUT|RESSONANCIA MAGNETICA DO CRANIO
MR BREAST BILATERAL|IRM cérébrale|MRI ABDOMEN LIVER PROTOCOL|MR KNEE RIGHT|Schädel MRT mit KM
MRI CARDIAC VIABILITY|MR RECTUM STAGING|MRA CIRCLE OF WILLIS"""
    ),
    "PT": entries(
        """PET CT SKULL BASE TO MID THIGH|PET^1_PETCT_WholeBody (Adult)|FDG WHOLE BODY|PET BRAIN AMYLOID
TEP SCAN CORPS ENTIER|PETCT ONCOLOGY RESTAGING|NaF BONE PET|PET CARDIAC PERFUSION RUBIDIUM"""
    ),
    "SR": entries(
        """CT CHEST W/O CONTRAST|MAMMOGRAM SCREENING BILATERAL|MRI BRAIN W WO CONTRAST|US THYROID|XR CHEST 2 VIEWS
ECHO COMPLETE"""
    ),
    "US": entries(
        """US ABDOMEN COMPLETE|US THYROID|ECHO TRANSTHORACIC|Sonographie Abdomen|US CAROTID DUPLEX BILATERAL
OB ULTRASOUND 2ND TRIMESTER|US BREAST LEFT LIMITED|RENAL ULTRASOUND|ECOGRAFIA ADDOME|US GUIDED BIOPSY LIVER"""
    ),
}
SERIES = {
    "CR": entries(
        """AP PORTABLE|W066 Thorax p.a.|PA|LATERAL|Abdomen a.p.|KNEE OBL|SUNRISE|AP SUPINE|W102 Becken|OBLIQUE LEFT"""
    ),
    "CT": entries(
        """CHEST 5.0 B31f|Recon 2: CHEST W/O|AX LUNG 1.25 BONE|Topogram 0.6 T20f|P4^P101^S108^I0, Gated, 0.0%
4.6 COLONOSCOPY (ACRIN)|THINS|ABD/PEL 3.75 STANDARD|Thorax 1.0 B70f|SCOUT|COR MPR 2MM|HELICAL MODE 1.5 I40s3
Dose Report|H20 HEAD 5mm|PORTAL VENOUS PHASE|SAG BONE 2.0 ST"""
    ),
    "DX": entries(
        """Chest PA|LAT|AP AXILLARY|CHEST LATERAL GRID|SCAPULA Y|PELVIS AP NO GRID|INSPIRATION|Frog leg lateral|ODONTOID
EXTENSION"""
    ),
    "MG": entries(
        """R CC|L MLO|L CC Tomosynthesis Projection|R MLO C-View|L ML MAGNIFICATION|R XCCL|L CC IMPLANT DISPLACED
R SPOT COMPRESSION"""
    ),
    "MR": entries(
        """t1_mpr_sag_p2_iso|AX T2 FSE FS|ep2d_diff_b50_400_800_ADC|3D AX LAVA-FLEX C+|SAG FLAIR CUBE|localizer
t2_tse_tra_320_p2|AX DWI b=1000|DYNAMIC THRIVE 4 PHASES|COR STIR|dSWI mIP|AX GRE T2*|WATER: ax dixon +C
sT1W_3D_TFE|MPRAGE GRAPPA2|AX 3D TOF MOTSA"""
    ),
    "PT": entries(
        """PET WB (AC)|WB CTAC 3.27|PET WB NAC|[WB_CTAC] Body|AC_CT_WB 5.0
BRAIN 3D OSEM 4i16s|PET AC 3DWB|Patient Protocol"""
    ),
    "SR": entries("""CAD Report|Radiation dose report|Measurements|Imaging Report|Basic Text SR|Results"""),
    "US": entries(
        """Liver long axis|RT KIDNEY SAG|PLAX 2D|Thyroid trans color|GALLBLADDER DECUB
A4C|CCA PROX LT|Fetal biometry BPD"""
    ),
}
PROTOCOLS = {
    "CR": entries("""Thorax p.a./120|PORT CHEST GRID|Extremity detail|Skull 70kV"""),
    "CT": entries(
        """6.1 ROUTINE CHEST|ABD_PEL_ROUTINE|5.12 CT COLONOGRAPHY|Head_Seq 4.8mm|CTA RUNOFF 120|LDCT SCREEN (BMI<30)"""
    ),
    "DX": entries("""Chest PA Wallstand|Shoulder table|Hip trauma crosstable|Default"""),
    "MG": entries("""Standard|AutoFilter AEC|Flat Field Tomo|Implant AEC"""),
    "MR": entries(
        """t1_mpr_sag_p2_iso|PROSTATE 3T ENDORECTAL|BRAIN TUMOR W PERFUSION|WIP 921 CS Liver|Spine lumbar routine
CARDIAC STRESS ADENOSINE"""
    ),
    "PT": entries("""PET_CT WB EYES-THIGH|WholeBody 2min/bed|BRAIN DYN 4x5|Cardiac gated 8bins"""),
    "SR": entries("""Report|Dose"""),
    "US": entries("""Abd Gen|Thyroid|Adult Echo|OB General"""),
}
HISTORIES = entries(
    """Persistent cough and weight loss, rule out malignancy|Status post lobectomy, routine surveillance
Headache and blurred vision for 3 weeks|Elevated PSA 7.4, prior negative biopsy
Palpable mass in upper outer quadrant|Known hepatic metastases, restaging after chemotherapy
Fall from standing height, left hip pain|Shortness of breath on exertion, pneumonia suspected
Thyroid nodule follow-up|Family history of breast carcinoma|Right lower quadrant pain with fever
Chronic low back pain radiating to the leg|Diabetes mellitus type 2, renal insufficiency
History of atrial fibrillation, on anticoagulation|Seizure, new onset|Postoperative evaluation of aortic graft"""
)
ALERTS = entries(
    """Iodinated contrast allergy|Pacemaker, MR conditional|Claustrophobia|Latex sensitivity|MRSA precautions|Fall risk
Cochlear implant|Metformin, hold 48 hours"""
)
FINDINGS = entries(
    """There is a 9 mm nodule in the right upper lobe|No pleural effusion or pneumothorax|The heart size is normal
Mild degenerative changes of the thoracic spine|Hepatic steatosis without focal lesion
Scattered fibroglandular densities, BI-RADS 2|Stable appearance compared with the previous examination
Enhancing lesion in the left temporal lobe measuring 2.3 x 1.8 cm|Gallbladder is unremarkable
Prostate volume 48 ml with a PI-RADS 4 lesion in the peripheral zone|Small calcified granuloma at the lung base
No acute intracranial hemorrhage"""
)
ADVICE = entries(
    """Follow-up CT in 6 months is recommended|Clinical correlation advised|Routine annual screening
Biopsy should be considered|Comparison with outside studies if available|No further imaging needed"""
)
AGENTS = entries(
    """Omnipaque 350|ISOVUE 300 100ML|GADAVIST 10cc IV|Ultravist 370|MULTIHANCE|ORAL & IV|APPLIED|Visipaque 320"""
)
DIAGNOSES = entries(
    """Lung cancer, non-small cell|Unspecified abdominal pain|Malignant neoplasm of prostate|Multiple sclerosis
Osteoarthritis of hip|Breast carcinoma in situ|Glioblastoma|Coronary artery disease"""
)
COMMENTS = entries(
    """Motion artifact|Limited by body habitus|Breath hold 20 sec|Image quality good|Repeat of series 4|Delayed 5 min"""
)
