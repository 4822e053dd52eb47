# Compares generated files with those that are checked in:
#   cmake -DGENERATED=build/x/generated -DCHECKED_IN=. -DFILES=crds/a.yaml,docs/b.md -P check_generated.cmake
string(REPLACE "," ";" files "${FILES}")
foreach(file ${files})
  execute_process(COMMAND ${CMAKE_COMMAND} -E compare_files ${GENERATED}/${file} ${CHECKED_IN}/${file} RESULT_VARIABLE differs)
  if(differs)
    message(SEND_ERROR "${file} is not current: run `cmake --build <build folder> --target update_generated` and commit it")
  endif()
endforeach()
