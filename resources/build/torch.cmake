# Finds LibTorch and makes the target `torch`. Sets EVENKEEL_CUDA where it is one with CUDA.
#
# The TorchConfig.cmake of a LibTorch with CUDA asks for a whole toolkit and a compiler of CUDA, and ends the configuration without. We compile
# no kernels: libraries and headers are enough. Both are in the packages nvidia-*-cu12 that pip installs beside `torch`; a toolkit is looked for
# only where they are not.
set(EVENKEEL_CUDA OFF)

# evenkeel_cuda_header(HEADER PACKAGE): the folder of a header, of the packages beside LibTorch or of a toolkit.
function(evenkeel_cuda_header header package)
  find_path(EVENKEEL_INCLUDE_${package} ${header} NO_CACHE NO_DEFAULT_PATH
    PATHS ${evenkeel_nvidia_folders} $ENV{CUDA_HOME} ${CUDAToolkit_ROOT} /usr/local/cuda /usr PATH_SUFFIXES include)
  if(NOT EVENKEEL_INCLUDE_${package})
    message(FATAL_ERROR "LibTorch with CUDA in ${evenkeel_cuda_torch}: there is no ${header}. Install the packages of pip beside it "
      "(nvidia-${package}-cu12 among them, as `pip install torch` does), or a toolkit of the same CUDA with NCCL, and name it by CUDA_HOME.")
  endif()
  set(EVENKEEL_INCLUDE_${package} ${EVENKEEL_INCLUDE_${package}} PARENT_SCOPE)
  set(evenkeel_cuda_includes ${evenkeel_cuda_includes} ${EVENKEEL_INCLUDE_${package}} PARENT_SCOPE)
endfunction()

# Headers of another CUDA than LibTorch was built with would compile, and fail on the card.
function(evenkeel_check_cuda_version folder include)
  foreach(file build-version version.py)
    if(EXISTS ${folder}/${file} AND NOT said)
      file(STRINGS ${folder}/${file} said REGEX "[+]cu[0-9]+")
    endif()
  endforeach()
  file(STRINGS ${include}/cuda_runtime_api.h defined REGEX "#define CUDART_VERSION +[0-9]+")
  if(NOT said MATCHES "[+]cu([0-9]+)[0-9]")
    return()
  endif()
  set(version ${CMAKE_MATCH_1})
  if(NOT defined MATCHES "CUDART_VERSION +${version}0")
    message(FATAL_ERROR "LibTorch in ${folder} is for CUDA ${version}, and the headers in ${include} are of another one. Install the packages of pip "
      "beside it (nvidia-cuda-runtime-cu${version} among them), or name a toolkit of that CUDA by CUDA_HOME.")
  endif()
endfunction()

function(evenkeel_torch_with_cuda folder)
  set(evenkeel_cuda_torch ${folder})
  file(GLOB evenkeel_nvidia_folders ${folder}/../nvidia/*)
  set(evenkeel_cuda_includes)
  evenkeel_cuda_header(cuda_runtime_api.h cuda-runtime)
  evenkeel_check_cuda_version(${folder} ${EVENKEEL_INCLUDE_cuda-runtime})
  evenkeel_cuda_header(cublas_v2.h cublas)
  evenkeel_cuda_header(cusparse.h cusparse)
  evenkeel_cuda_header(cusolverDn.h cusolver)
  evenkeel_cuda_header(nccl.h nccl)
  list(REMOVE_DUPLICATES evenkeel_cuda_includes)

  set(libraries)
  foreach(name c10 torch_cpu c10_cuda torch_cuda torch)
    add_library(evenkeel_lib${name} SHARED IMPORTED GLOBAL)
    set_target_properties(evenkeel_lib${name} PROPERTIES IMPORTED_LOCATION ${folder}/lib/lib${name}.so)
    list(APPEND libraries evenkeel_lib${name})
  endforeach()
  # Of pip's package there is libcudart.so.12 alone; a toolkit, or a LibTorch from a zip file, has its own.
  file(GLOB runtimes ${folder}/../nvidia/cuda_runtime/lib/libcudart.so* ${folder}/lib/libcudart*.so*)
  foreach(include IN LISTS evenkeel_cuda_includes)
    file(GLOB more ${include}/../lib64/libcudart.so ${include}/../lib/libcudart.so)
    list(APPEND runtimes ${more})
  endforeach()
  if(NOT runtimes)
    message(FATAL_ERROR "LibTorch with CUDA in ${folder}: there is no libcudart. Install nvidia-cuda-runtime-cu12 beside it, or a toolkit of the same CUDA.")
  endif()
  list(GET runtimes 0 runtime)
  add_library(evenkeel_libcudart SHARED IMPORTED GLOBAL)
  set_target_properties(evenkeel_libcudart PROPERTIES IMPORTED_LOCATION ${runtime})

  add_library(torch INTERFACE IMPORTED GLOBAL)
  set_target_properties(torch PROPERTIES
    INTERFACE_INCLUDE_DIRECTORIES "${folder}/include;${folder}/include/torch/csrc/api/include;${evenkeel_cuda_includes}"
    INTERFACE_COMPILE_DEFINITIONS "USE_DISTRIBUTED;USE_C10D_GLOO;USE_C10D_NCCL;USE_CUDA"
    # Kernels register themselves when their library is loaded; and what LibTorch needs of NVIDIA's may be on the nodes only.
    INTERFACE_LINK_OPTIONS "-Wl,--no-as-needed;-Wl,--allow-shlib-undefined"
    INTERFACE_LINK_LIBRARIES "${libraries};evenkeel_libcudart")
endfunction()

foreach(folder IN LISTS CMAKE_PREFIX_PATH)
  if(EXISTS ${folder}/lib/libtorch_cuda.so AND NOT TARGET torch)
    evenkeel_torch_with_cuda(${folder})
    set(EVENKEEL_CUDA ON)
    set(TORCH_INCLUDE_DIRS ${folder}/include)
    message(STATUS "LibTorch with CUDA: ${folder}")
  endif()
endforeach()
if(NOT EVENKEEL_CUDA)
  set(CMAKE_FIND_PACKAGE_TARGETS_GLOBAL ON)  # the tests link it too
  find_package(Torch QUIET)
endif()
