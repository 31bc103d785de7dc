"""Technical attributes that stay bit for bit, by modality: `Keyword Type value|value|...`, one value drawn a series.

Types are those of the modality's IOD (PS3.3), where 1C counts as 1 and 2C as 2 for an attribute that is there. A value
with `#` draws a number. `INSTANCE` rows are drawn anew for every instance.
"""

from __future__ import annotations

COMMON = """
Manufacturer 2 SIEMENS|GE MEDICAL SYSTEMS|Philips Medical Systems|TOSHIBA|HOLOGIC, Inc.|FUJIFILM Corporation|Agfa
ManufacturerModelName 3 Sensation 64|LightSpeed VCT|Ingenia|Aquilion ONE|Selenia Dimensions|Skyra|DX-D 300
SoftwareVersions 3 syngo CT 2009E|gmp_vct.42|5.3.0\\5.3.0.3|V6.00ER004|AWS:MAMMODROC_3_4_1_8|Philips 1.7.2
BodyPartExamined 3 CHEST|ABDOMEN|HEAD|BREAST|PELVIS|WHOLEBODY|NECK|EXTREMITY
SeriesNumber 2 1|2|3|4|5|301|501|9001
AcquisitionNumber 2 1|2|3
PatientSize 3 1.62|1.75|1.8|1.58
PatientWeight 3 61.5|72|84.2|95
EthnicGroup 3 WHITE|HISPANIC|BLACK|ASIAN
SmokingStatus 3 NO|YES|UNKNOWN
QualityControlImage 3 NO
PresentationIntentType 3 FOR PRESENTATION
"""
IMAGE = """
SamplesPerPixel 1 1
PhotometricInterpretation 1 MONOCHROME2
LossyImageCompression 3 00
WindowCenter 3 40|50|300|2047
WindowWidth 3 400|350|1500|4095
WindowCenterWidthExplanation 3 NORMAL|LUNG
RescaleIntercept 3 -1024|0
RescaleSlope 3 1|0.5
RescaleType 3 HU|US
BurnedInAnnotation 3 NO
"""
INSTANCE = """
InstanceNumber 2 #1-400
TemporalPositionIdentifier 3 1|2|3
ImageIndex 3 #1-300
"""
BY_MODALITY = {
    "CT": """
ScanOptions 3 HELICAL MODE|AXIAL MODE|SCOUT MODE|HELIX
KVP 2 100|120|140|80
DataCollectionDiameter 3 500|650
ReconstructionDiameter 3 320|360|415.5
DistanceSourceToDetector 3 949.075|1040
DistanceSourceToPatient 3 541|570
GantryDetectorTilt 3 0|-12.5
TableHeight 3 143.5|161|-12
RotationDirection 3 CW
ExposureTime 3 500|800|1000
XRayTubeCurrent 3 110|220|335
Exposure 3 88|150|245
FilterType 3 BODY FILTER|WEDGE_3|0
GeneratorPower 3 26400|40
FocalSpots 3 1.2|0.7
ConvolutionKernel 3 B31f|STANDARD|LUNG|I40s\\3|FC08|BONEPLUS
RevolutionTime 3 0.5|0.33
SingleCollimationWidth 3 0.625|0.6
TotalCollimationWidth 3 40|38.4
TableSpeed 3 78.75|110
TableFeedPerRotation 3 39.37|23
SpiralPitchFactor 3 0.984375|1.375
ExposureModulationType 3 XYZ_EC|NONE
EstimatedDoseSaving 3 12.5
CTDIvol 3 7.42|13.9
SliceThickness 2 0.625|1.25|3|5
SpacingBetweenSlices 3 2.5|5
PixelSpacing 1 0.703125\\0.703125|0.9765625\\0.9765625
ImageOrientationPatient 1 1\\0\\0\\0\\1\\0
PositionReferenceIndicator 2 SN|XY
SliceLocation 3 #1-300
PatientPosition 2 HFS|FFS|FFP
ContrastBolusRoute 3 IV|Oral
ContrastBolusVolume 3 100|75
ContrastFlowRate 3 2.5|4
ContrastBolusIngredient 3 IODINE
AcquisitionType 3 SPIRAL|CONSTANT_ANGLE
TubeAngle 3 12.5
TableTopVerticalPosition 3 160.5
""",
    "MR": """
ScanningSequence 1 SE|GR|EP\\SE|IR
SequenceVariant 1 SK\\SP|SP|OSP|NONE
ScanOptions 2 FS|FAST_GEMS\\SAT_GEMS|PFP|OTHER
MRAcquisitionType 2 2D|3D
SequenceName 3 *tfl3d1_16ns|*ep_b1000t|*tse2d1_17|*fl3d1
AngioFlag 3 N|Y
RepetitionTime 2 2300|500|4350
EchoTime 2 2.98|85|101
InversionTime 2 900|2500
NumberOfAverages 3 1|2
ImagingFrequency 3 123.2|63.86
ImagedNucleus 3 1H
EchoNumbers 3 1
MagneticFieldStrength 3 3|1.5
NumberOfPhaseEncodingSteps 3 256|205
EchoTrainLength 2 1|15
PercentSampling 3 100|80
PercentPhaseFieldOfView 3 100|75
PixelBandwidth 3 240|130.2
ReceiveCoilName 3 HEADMATRIX|8HRBRAIN|Body
TransmitCoilName 3 Body|Quad body
AcquisitionMatrix 3 0\\256\\205\\0|256\\0\\0\\192
InPlanePhaseEncodingDirection 3 ROW|COL
FlipAngle 3 9|90|150
VariableFlipAngleFlag 3 N
SAR 3 0.06|1.42
dBdt 3 0
TriggerTime 3 0|245
NominalInterval 3 850
BeatRejectionFlag 3 N
HeartRate 3 0|61
DiffusionBValue 3 1000|50
SliceThickness 2 1|3|5
SpacingBetweenSlices 3 3.3|6
PixelSpacing 1 1\\1|0.625\\0.625
ImageOrientationPatient 1 1\\0\\0\\0\\1\\0|0\\1\\0\\0\\0\\-1
PositionReferenceIndicator 2 NASION
SliceLocation 3 #1-180
PatientPosition 2 HFS|HFP
ParallelAcquisitionTechnique 3 GRAPPA|SENSE
""",
    "PT": """
Units 1 BQML|CNTS|GML
CountsSource 1 EMISSION
SeriesType 1 STATIC\\IMAGE|WHOLE BODY\\IMAGE
ReprojectionMethod 2 NONE
CorrectedImage 2 DECY\\ATTN\\SCAT\\RAN|NORM\\DTIM
NumberOfSlices 1 263|74
RandomsCorrectionMethod 3 DLYD|RTSUB
AttenuationCorrectionMethod 3 CT-derived mu-map|measured,AC_CT
DecayCorrection 1 START|ADMIN
ReconstructionMethod 3 OSEM3D 4i16s|3D Kinahan - Rogers|BLOB-OS-TF
ScatterCorrectionMethod 3 Model-based|SS-SIMUL
DetectorLinesOfResponseUsed 3 2
FrameReferenceTime 1 0|119000
DecayFactor 3 1.0123|1.3
DoseCalibrationFactor 3 1
ScatterFractionFactor 3 0.38
AxialAcceptance 3 38
AxialMash 3 5\\6
CollimatorType 2 NONE
ActualFrameDuration 1 120000|180000
FieldOfViewShape 3 CYLINDRICAL RING
FieldOfViewDimensions 3 700\\157
GantryDetectorTilt 3 0
ConvolutionKernel 3 XYZ Gauss2.00|All-pass
EnergyWindowLowerLimit 3 435
EnergyWindowUpperLimit 3 650
SliceThickness 2 3.27|5
PixelSpacing 1 4.07283\\4.07283|5.46875\\5.46875
ImageOrientationPatient 1 1\\0\\0\\0\\1\\0
PositionReferenceIndicator 2 SP
SliceLocation 3 #1-400
PatientPosition 2 HFS
""",
    "CR": """
KVP 2 70|85|125
PlateType 3 FCR ST-VI|MD4.0
PhosphorType 3 BaFBr|CsI
ViewPosition 3 AP|PA|LL
ImagerPixelSpacing 3 0.143\\0.143|0.2\\0.2
Sensitivity 3 200|412.5
AcquisitionDeviceProcessingCode 3 10904|100
CassetteOrientation 3 PORTRAIT|LANDSCAPE
CassetteSize 3 35CMX43CM|24CMX30CM
ExposuresOnPlate 3 12
RelativeXRayExposure 3 1720
Exposure 3 2|5
DistanceSourceToDetector 3 1800|1150
SpatialResolution 3 0.1
Grid 3 NONE|FOCUSED
FilterType 3 NONE
PatientOrientation 2 L\\F|A\\F
Laterality 2 R|L
""",
    "DX": """
KVP 3 66|81|125
XRayTubeCurrent 3 250|320
ExposureTime 3 5|12
Exposure 3 2|4
ExposureInuAs 3 1800|3950
DistanceSourceToDetector 3 1800|1000
DistanceSourceToPatient 3 1700
GridFocalDistance 3 1400
Grid 3 FOCUSED|NONE
FocalSpots 3 0.6|1.2
AnodeTargetMaterial 3 TUNGSTEN
FilterMaterial 3 ALUMINUM|COPPER
FilterThicknessMinimum 3 1
FilterThicknessMaximum 3 1
ExposureControlMode 3 AUTOMATIC|MANUAL
ImageAndFluoroscopyAreaDoseProduct 3 0.52|1.1
DetectorType 2 SCINTILLATOR|DIRECT
DetectorConfiguration 3 AREA
DetectorTemperature 3 31.5
DetectorConditionsNominalFlag 3 YES
FieldOfViewShape 3 RECTANGLE
FieldOfViewDimensions 3 430\\430|350\\430
FieldOfViewOrigin 1 0\\0
FieldOfViewRotation 1 0
FieldOfViewHorizontalFlip 1 NO
ImagerPixelSpacing 1 0.139\\0.139|0.143\\0.143
PixelIntensityRelationship 1 LOG|LIN
PixelIntensityRelationshipSign 1 1|-1
PixelAspectRatio 3 1\\1
ImageLaterality 1 U|R|L
PatientOrientation 1 L\\F|P\\F
ViewPosition 3 PA|AP|LL
Sensitivity 3 400
RelativeXRayExposure 3 310
ExposureIndex 3 412|268.5
TargetExposureIndex 3 400
DeviationIndex 3 0.2|-1.7
PresentationLUTShape 1 IDENTITY|INVERSE
""",
    "MG": """
KVP 3 28|31
XRayTubeCurrent 3 100|180
ExposureTime 3 620|1150
Exposure 3 62|118
ExposureInuAs 3 61800
DistanceSourceToDetector 3 660|700
DistanceSourceToPatient 3 640
EstimatedRadiographicMagnificationFactor 3 1|1.8
BodyPartThickness 3 55|62
CompressionForce 3 88.9|120
FocalSpots 3 0.3|0.1
AnodeTargetMaterial 3 TUNGSTEN|MOLYBDENUM|RHODIUM
FilterMaterial 3 RHODIUM|SILVER
FilterThicknessMinimum 3 0.045
ExposureControlMode 3 AUTOMATIC
ExposureControlModeDescription 3 AutoFilter|AOP
HalfValueLayer 3 0.531
OrganDose 3 0.0143
EntranceDoseInmGy 3 5.2
DetectorType 2 DIRECT|SCINTILLATOR
DetectorActiveShape 3 RECTANGLE
DetectorBinning 3 1\\1
FieldOfViewShape 3 RECTANGLE
FieldOfViewDimensions 3 240\\290
FieldOfViewOrigin 1 0\\0
FieldOfViewRotation 1 0
FieldOfViewHorizontalFlip 1 NO
ImagerPixelSpacing 1 0.07\\0.07|0.1\\0.1
PositionerType 2 MAMMOGRAPHIC
PositionerPrimaryAngle 3 0|45
ViewPosition 3 CC|MLO|ML
ImageLaterality 1 R|L
PatientOrientation 1 A\\R|P\\L
OrganExposed 1 BREAST
BreastImplantPresent 3 NO
PixelIntensityRelationship 1 LOG
PixelIntensityRelationshipSign 1 -1
PresentationLUTShape 1 IDENTITY
""",
    "US": """
NumberOfFrames 1 2
FrameTime 1 33.333|41.7
CineRate 3 30|24
RecommendedDisplayFrameRate 3 30
HeartRate 3 68|72
MechanicalIndex 3 1.2|0.9
SoftTissueThermalIndex 3 0.4
BoneThermalIndex 3 0.6
DepthOfScanField 3 160|90
TransducerData 3 C5-1\\CURVED\\0|L12-3
TransducerType 3 CURVED LINEAR|SECTOR_PHASED
FocusDepth 3 8.5
ProcessingFunction 3 ABDOMEN
UltrasoundColorDataPresent 3 0|1
NumberOfStages 2 1
NumberOfViewsInStage 2 1
StageNumber 2 1
ViewNumber 2 1
""",
    "SR": """
CompletionFlag 1 COMPLETE
VerificationFlag 1 UNVERIFIED
PreliminaryFlag 3 FINAL
ContentLabel 3 FINDINGS
""",
}
