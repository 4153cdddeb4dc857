# Writes C that holds a file: -DIN=… -DOUT=… -DNAME=…
file(READ ${IN} hex HEX)
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
string(REGEX REPLACE "(0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,)" "\\1\n" bytes "${bytes}")
file(WRITE ${OUT} "#include \"api-gateway/texts.h\"\n\nstatic const unsigned char bytes[] = {\n${bytes}0};\n\nstk_str stk_gw_text_${NAME}(void)\n{\n    return stk_str_n(bytes, sizeof(bytes) - 1);\n}\n")
