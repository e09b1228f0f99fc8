# The headers that nearly every file reads, compiled once for each family of targets: a build from nothing takes about 40 % less. Every file still
# names what it uses; the asan preset builds without this (EVENKEEL_PRECOMPILE=OFF) and would find a missing name.
option(EVENKEEL_PRECOMPILE "Compile the headers that nearly every file reads once" ON)

set(evenkeel_std_headers
  <algorithm> <array> <filesystem> <fstream> <functional> <map> <optional> <set> <span> <string> <string_view> <vector>)
set(evenkeel_plain_headers ${evenkeel_std_headers} <fmt/format.h> <nlohmann/json.hpp>)
set(evenkeel_test_headers <gmock/gmock.h> <gtest/gtest.h>)
set(evenkeel_qt_headers
  <QApplication> <QCheckBox> <QComboBox> <QFormLayout> <QLabel> <QLineEdit> <QMainWindow> <QMenu> <QPainter> <QPushButton> <QSettings> <QSpinBox>
  <QTimer> <QToolButton> <QTreeView> <QVBoxLayout>)

# A library of nothing that owns the compiled headers of a family.
function(evenkeel_header_family family)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "HEADERS;LIBS")
  add_library(evenkeel_headers_${family} STATIC ${PROJECT_SOURCE_DIR}/resources/build/precompile.cpp)
  set_target_properties(evenkeel_headers_${family} PROPERTIES AUTOMOC OFF)
  target_link_libraries(evenkeel_headers_${family} PRIVATE ${arg_LIBS} nlohmann_json::nlohmann_json fmt::fmt evenkeel::strict)
  target_precompile_headers(evenkeel_headers_${family} PRIVATE ${arg_HEADERS})
endfunction()

# Compiles the headers once and gives them to all programs and libraries of the project, each to its family. Call it last.
function(evenkeel_precompile)
  if(NOT EVENKEEL_PRECOMPILE)
    return()
  endif()
  # Found by the folders that use them; a folder above does not see what they found.
  if(EVENKEEL_PARTS STREQUAL "all")
    find_package(GTest QUIET)
    find_package(Qt6 6.4 QUIET COMPONENTS Widgets)
  endif()
  evenkeel_header_family(plain HEADERS ${evenkeel_plain_headers})
  if(TARGET torch)
    # Without fmt: some of these programs have it as headers only, others as a library.
    evenkeel_header_family(torch HEADERS ${evenkeel_std_headers} <nlohmann/json.hpp> <ATen/core/Tensor.h> LIBS torch)
  endif()
  if(TARGET GTest::gmock)
    evenkeel_header_family(plain_test HEADERS ${evenkeel_plain_headers} ${evenkeel_test_headers} LIBS GTest::gmock)
  endif()
  if(TARGET evenkeel_qt)
    evenkeel_header_family(qt HEADERS ${evenkeel_plain_headers} ${evenkeel_qt_headers} LIBS evenkeel::qt)
  endif()
  if(TARGET evenkeel_qt AND TARGET GTest::gmock)
    evenkeel_header_family(qt_test HEADERS ${evenkeel_plain_headers} ${evenkeel_qt_headers} ${evenkeel_test_headers} LIBS evenkeel::qt GTest::gmock)
  endif()
  evenkeel_precompile_below(${PROJECT_SOURCE_DIR})
endfunction()

function(evenkeel_precompile_below directory)
  get_property(folders DIRECTORY ${directory} PROPERTY SUBDIRECTORIES)
  foreach(folder IN LISTS folders)
    evenkeel_precompile_below(${folder})
  endforeach()
  get_property(targets DIRECTORY ${directory} PROPERTY BUILDSYSTEM_TARGETS)
  foreach(target IN LISTS targets)
    get_target_property(type ${target} TYPE)
    if(NOT type MATCHES "EXECUTABLE|STATIC_LIBRARY" OR target MATCHES "^evenkeel_headers_")
      continue()
    endif()
    get_target_property(libraries ${target} LINK_LIBRARIES)
    set(family plain)
    if("torch" IN_LIST libraries OR "evenkeel::train" IN_LIST libraries)
      set(family torch)
    elseif(libraries MATCHES "evenkeel::(qt|gui)")
      set(family qt)
    endif()
    if(libraries MATCHES "GTest::" AND NOT family STREQUAL torch)
      string(APPEND family _test)
    endif()
    # GCC 12 forgets which lines of compiled headers are the system's and shows its false alarms inside std::string there (its bug 105651).
    target_compile_options(${target} PRIVATE -Wno-restrict -Wno-array-bounds -Wno-stringop-overflow -Wno-stringop-overread -Wno-maybe-uninitialized)
    target_link_libraries(${target} PRIVATE fmt::fmt)  # its macros are part of what was compiled
    target_precompile_headers(${target} REUSE_FROM evenkeel_headers_${family})
  endforeach()
endfunction()
