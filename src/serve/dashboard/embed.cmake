# Puts the page's parts together, and writes them as a C++ string.
#   cmake -DFOLDER=... -DSCRIPTS="a.js;b.js" -DOUTPUT=... -P embed.cmake
file(READ "${FOLDER}/page.html" page)
file(READ "${FOLDER}/style.css" style)
set(script "")
foreach(name ${SCRIPTS})
  file(READ "${FOLDER}/${name}" part)
  string(APPEND script "${part}")
endforeach()
string(REPLACE "/*STYLE*/" "${style}" page "${page}")
string(REPLACE "/*SCRIPT*/" "${script}" page "${page}")
set(out "#include \"serve/dashboard/page_text.h\"\n\nnamespace tacit::serve {\n\n")
string(APPEND out "const std::string_view kPageText = R\"tacit_page(${page})tacit_page\";\n\n}\n")
file(WRITE "${OUTPUT}" "${out}")
