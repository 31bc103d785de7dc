"""Private blocks as scanners write them, each element with its fate in TCIA's private-tag knowledge base.

`creator;group;offset;VR;fate;values`. Fates: `keep` and listed as safe in PS3.15 Table E.3.10-1 too; `tcia` kept by
TCIA only; `delete`; `date` and `uid` are replaced. `{name}`, `{mrn}`, ... plant identity, `{date}` a study date,
`{epoch}` a date in seconds since 1970, `{uid}` an instance of this study.
"""

from __future__ import annotations

SIEMENS_MR = """
SIEMENS MR HEADER;0019;0C;IS;keep;1000|50|0
SIEMENS MR HEADER;0019;0D;CS;keep;DIRECTIONAL|NONE
SIEMENS MR HEADER;0019;0E;FD;keep;0.70710678\\0.70710678\\0
SIEMENS MR HEADER;0019;27;FD;keep;500\\0\\0\\500\\0\\0
SIEMENS MR HEADER;0019;0A;US;tcia;36|25
SIEMENS MR HEADER;0019;0F;SH;tcia;Fast*|Normal
SIEMENS MR HEADER;0019;15;FD;tcia;-97.5\\-112.25\\34.875
SIEMENS MR HEADER;0019;18;IS;tcia;2400|6500
SIEMENS MR HEADER;0019;08;CS;delete;IMAGE NUM 4
SIEMENS MR HEADER;0051;08;CS;tcia;IMAGE NUM 4
SIEMENS MR HEADER;0051;0B;SH;tcia;256p*256|192p*256
SIEMENS MR HEADER;0051;0F;LO;tcia;HEA;HEP|T:BO1,2
SIEMENS MR HEADER;0051;0A;LO;delete;TA 00:{seconds}
SIEMENS MR HEADER;0051;0E;LO;delete;Tra {date}
SIEMENS MEDCOM HEADER;0029;08;CS;delete;MEDCOM 1
SIEMENS MEDCOM HEADER;0029;19;LO;delete;{date}
SIEMENS CSA HEADER;0029;08;CS;delete;IMAGE NUM 4
SIEMENS CSA HEADER;0029;10;OB;delete;{blob}
"""
SIEMENS_CT = """
SIEMENS CT VA0  COAD;0019;10;IS;tcia;570|535
SIEMENS CT VA0  COAD;0019;11;IS;tcia;1040
SIEMENS CT VA0  COAD;0019;B0;DS;tcia;23.04
SIEMENS CT VA0  COAD;0019;90;DS;tcia;0
SIEMENS CT VA0  COAD;0019;B1;LO;delete;{last} thorax
SIEMENS CT VA0  COAD;0019;C2;DA;delete;{date}
SIEMENS MED;0009;12;LO;delete;{name} {mrn}
"""
GE_CT = """
GEMS_IDEN_01;0009;01;LO;tcia;GE_LIGHTSPEED_FF
GEMS_IDEN_01;0009;02;SH;delete;CT{suite}
GEMS_IDEN_01;0009;04;SH;tcia;LightSpeed VCT
GEMS_IDEN_01;0009;27;SL;date;{epoch}
GEMS_IDEN_01;0009;30;SH;delete;{service}
GEMS_IDEN_01;0009;E3;UI;uid;{uid}
GEMS_IDEN_01;0009;E9;SL;date;{epoch}
GEMS_ACQU_01;0019;23;DS;keep;39.375|55
GEMS_ACQU_01;0019;24;DS;keep;12.441
GEMS_ACQU_01;0019;27;DS;keep;0.5|0.8
GEMS_ACQU_01;0019;02;SL;tcia;912
GEMS_ACQU_01;0019;03;DS;tcia;391.75
GEMS_ACQU_01;0019;1A;LO;tcia;I|S
GEMS_ACQU_01;0019;2C;SL;tcia;9842
GEMS_ACQU_01;0019;39;SS;tcia;16
GEMS_STDY_01;0023;70;FD;date;{epoch}
GEMS_STDY_01;0023;74;SL;tcia;1
GEMS_SERS_01;0025;07;SL;keep;220|64
GEMS_PARM_01;0043;27;SH;keep;/1.0:1|/0.984:1
GEMS_PARM_01;0043;10;US;tcia;400
GEMS_PARM_01;0043;1E;DS;tcia;2.0
GEMS_PARM_01;0043;28;OB;delete;{blob}
GEMS_PARM_01;0043;2A;OB;delete;{blob}
GEMS_HELIOS_01;0045;01;SS;keep;64
GEMS_HELIOS_01;0045;02;FL;keep;0.625
GEMS_HELIOS_01;0045;06;CS;tcia;OUT OF GANTRY|INTO GANTRY
GEIIS PACS;0903;10;US;keep;0
GEIIS PACS;0903;11;US;keep;0
"""
PHILIPS_MR = """
Philips Imaging DD 001;2001;01;FL;keep;0
Philips Imaging DD 001;2001;03;FL;keep;1000|0
Philips Imaging DD 001;2001;08;IS;keep;1
Philips Imaging DD 001;2001;0B;CS;keep;TRANSVERSAL|SAGITTAL
Philips Imaging DD 001;2001;10;CS;keep;NO
Philips Imaging DD 001;2001;18;SL;keep;24|180
Philips Imaging DD 001;2001;20;LO;tcia;T1TFE|SE
Philips Imaging DD 001;2001;23;DS;keep;8|90
Philips Imaging DD 001;2001;60;SL;keep;1
Philips Imaging DD 001;2001;87;SH;keep;1H
Philips MR Imaging DD 001;2005;0D;FL;keep;0
Philips MR Imaging DD 001;2005;0E;FL;keep;0.0034
Philips MR Imaging DD 001;2005;30;FL;tcia;7.6
Philips MR Imaging DD 001;2005;2A;IS;delete;{number}
Philips MR Imaging DD 001;2005;16;CS;tcia;NO
"""
PHILIPS_PT = """
Philips PET Private Group;7053;00;DS;keep;0.000386137
Philips PET Private Group;7053;09;DS;keep;1.42301
Philips PET Private Group;7053;03;ST;delete;/data/{last}_{mrn}.pet
Philips PET Private Group;7053;05;LO;delete;WL_{mrn}.txt
"""
GE_PT = """
GEMS_PETD_01;0009;01;LO;tcia;PET-DISC-690
GEMS_PETD_01;0009;02;LO;delete;{mrn}
GEMS_PETD_01;0009;05;DT;date;{datetime}
GEMS_PETD_01;0009;07;UI;uid;{uid}
GEMS_PETD_01;0009;0A;UI;uid;{uid}
GEMS_PETD_01;0009;0D;DT;date;{datetime}
GEMS_PETD_01;0009;0F;ST;delete;PET {name}
GEMS_PETD_01;0009;10;LO;delete;{hospital}
GEMS_PETD_01;0009;11;LO;tcia;Discovery 690
GEMS_PETD_01;0009;18;SL;tcia;1
GEMS_PETD_01;0009;1E;SL;tcia;1
GEMS_PETD_01;0009;2C;SL;tcia;157
GEMS_PETD_01;0009;3B;DT;date;{datetime}
"""
ELSCINT_CT = """
ELSCINT1;00E1;21;DS;keep;312.4
ELSCINT1;00E1;50;DS;keep;9.37
ELSCINT1;01F1;01;CS;keep;HELIX
ELSCINT1;01F1;07;DS;keep;46.1
ELSCINT1;01F1;26;DS;keep;1.172
ELSCINT1;01F1;27;DS;keep;0.5
ELSCINT1;00E1;40;SH;delete;{last}
ELSCINT1;00E1;61;LO;delete;{hospital}
"""
HOLOGIC_MG = """
HOLOGIC, Inc.;0019;07;SH;tcia;C
HOLOGIC, Inc.;0019;08;LO;tcia;24cmX29cm
HOLOGIC, Inc.;0019;16;DS;tcia;0
HOLOGIC, Inc.;0019;41;DS;tcia;412
HOLOGIC, Inc.;0019;44;DS;tcia;28
HOLOGIC, Inc.;0019;06;LO;delete;PADDLE {number}
HOLOGIC, Inc.;7E01;01;LO;keep;2.0
HOLOGIC, Inc.;7E01;02;SH;keep;STD
"""
FUJI_CR = """
FDMS 1.0;0009;10;CS;tcia;12
FDMS 1.0;0009;90;ST;tcia;0
FDMS 1.0;0009;80;LO;delete;{hospital}
FDMS 1.0;0019;50;CS;tcia;SEMI_AUTO
FDMS 1.0;0019;32;LO;delete;CHEST {last}
FDMS 1.0;0021;10;CS;tcia;FCR A1
FDMS 1.0;0025;10;US;tcia;184
"""
GE_DX = """
GEMS_GDXE_FALCON_04;0011;04;CS;delete;NORMAL
GEMS_GDXE_FALCON_04;0011;39;CS;tcia;1
GEMS_GDXE_FALCON_04;0011;12;LT;delete;{name}
GEMS_GDXE_FALCON_04;0011;05;UI;delete;{uid}
"""
SIEMENS_US = """
SIEMENS MED SMS USG S2000;0019;03;FD;tcia;31.5
SIEMENS MED SMS USG S2000;0019;0D;SH;tcia;SieClear 3
SIEMENS MED SMS USG S2000;0019;20;SH;tcia;THI
SIEMENS MED SMS USG S2000;0019;22;FD;tcia;4
SIEMENS MED SMS USG S2000;0019;60;FD;delete;70
"""
# Nobody's list knows these: they go, whatever they hold.
UNKNOWN = """
RIVERBEND RIS 1.0;0031;01;LO;delete;{name}
RIVERBEND RIS 1.0;0031;02;LO;delete;{mrn}
RIVERBEND RIS 1.0;0031;03;DA;delete;{born}
RIVERBEND RIS 1.0;0031;04;PN;delete;{referring}
RIVERBEND RIS 1.0;0031;05;UT;delete;Spoke with {name}, lives at {street}
"""
BLOCKS = {
    "CT": (SIEMENS_CT, GE_CT, GE_CT, ELSCINT_CT),
    "MR": (SIEMENS_MR, SIEMENS_MR, PHILIPS_MR),
    "PT": (PHILIPS_PT, GE_PT),
    "MG": (HOLOGIC_MG,),
    "CR": (FUJI_CR,),
    "DX": (GE_DX,),
    "US": (SIEMENS_US,),
    "SR": ("",),
}
