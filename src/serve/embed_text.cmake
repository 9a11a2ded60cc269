# Writes a text file as a C++ string.
#   cmake -DINPUT=... -DOUTPUT=... -P embed_text.cmake
file(READ "${INPUT}" text)
file(WRITE "${OUTPUT}" "#include \"serve/route_table.h\"\n\nnamespace tacit::serve {\n
const std::string_view kOpenApiParts = R\"tacit_text(${text})tacit_text\";\n\n}\n")
