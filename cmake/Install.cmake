# cmake --install: the program and the plugin, man pages and completions, all written by the program itself.
#
# Program, plugin and the engine's libraries stand together in lib/cascade, where they find each other by $ORIGIN and no
# other llama.cpp is in the way; bin/cascade is a link. An engine of somebody else's (CASCADE_ENGINE_BIN) stays where it is.
include(GNUInstallDirs)
if(CASCADE_SANITIZE OR CMAKE_CROSSCOMPILING) # the program can't be run here, or isn't for people
    return()
endif()

set(pages ${PROJECT_BINARY_DIR}/share/man1)
set(completions ${PROJECT_BINARY_DIR}/share/completions)
add_custom_command(OUTPUT ${pages}/cascade.1 ${completions}/cascade.bash ${completions}/_cascade
        ${completions}/cascade.fish
    COMMAND ${CMAKE_COMMAND} -E rm -rf ${pages} # of commands that are no more
    COMMAND ${CMAKE_COMMAND} -E make_directory ${completions}
    COMMAND cascade man --all ${pages}
    COMMAND cascade completion bash > ${completions}/cascade.bash
    COMMAND cascade completion zsh > ${completions}/_cascade
    COMMAND cascade completion fish > ${completions}/cascade.fish
    DEPENDS cascade engine_bin
    COMMENT "Man pages and completions"
    VERBATIM)
add_custom_target(documents ALL DEPENDS ${pages}/cascade.1 ${completions}/cascade.bash ${completions}/_cascade
    ${completions}/cascade.fish)

set(together ${CMAKE_INSTALL_LIBDIR}/cascade)
install(TARGETS cascade ggml-cascade RUNTIME DESTINATION ${together} LIBRARY DESTINATION ${together})
if(NOT CASCADE_ENGINE_BIN)
    install(DIRECTORY ${engine_bin}/ DESTINATION ${together} USE_SOURCE_PERMISSIONS
        FILES_MATCHING REGEX "/lib(ggml|llama)[-a-z0-9]*\\.so[.0-9]*$" REGEX "-impl\\.so$" EXCLUDE
        REGEX "libllama-common" EXCLUDE)
endif()
file(RELATIVE_PATH link_target /prefix/${CMAKE_INSTALL_BINDIR} /prefix/${together}/cascade)
install(CODE "set(link \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_BINDIR}/cascade\")
    file(MAKE_DIRECTORY \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_BINDIR}\")
    file(CREATE_LINK ${link_target} \"\${link}\" SYMBOLIC)
    message(STATUS \"Installing: \${link}\")")
install(DIRECTORY ${pages}/ DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
install(FILES ${completions}/cascade.bash RENAME cascade
    DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
install(FILES ${completions}/_cascade DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
install(FILES ${completions}/cascade.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
