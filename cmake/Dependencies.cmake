# Everything here is a Debian 12 package; the list of packages is in cmake/debian-packages.txt.
find_package(Threads REQUIRED)
find_package(OpenMP REQUIRED COMPONENTS CXX)
find_package(Protobuf 3.21 REQUIRED)
find_package(gRPC CONFIG REQUIRED)
find_package(absl CONFIG REQUIRED)
find_package(nlohmann_json 3.11 CONFIG REQUIRED)
find_package(yaml-cpp CONFIG REQUIRED)
find_package(fmt CONFIG REQUIRED)
find_package(spdlog CONFIG REQUIRED)
find_package(CLI11 CONFIG REQUIRED)
find_package(prometheus-cpp CONFIG REQUIRED)
find_package(OpenSSL REQUIRED)
find_package(GTest CONFIG REQUIRED)

# oneDNN's own package file demands OpenCL, which a CPU build does not use.
find_path(DNNL_INCLUDE_DIR oneapi/dnnl/dnnl.hpp REQUIRED)
find_library(DNNL_LIBRARY dnnl REQUIRED)
add_library(dnnl_cpu INTERFACE)
target_include_directories(dnnl_cpu SYSTEM INTERFACE ${DNNL_INCLUDE_DIR})
target_link_libraries(dnnl_cpu INTERFACE ${DNNL_LIBRARY} OpenMP::OpenMP_CXX)

# Optional: what needs MPI is compiled where its header is found. The C interface only.
set(MPI_CXX_SKIP_MPICXX ON)
find_package(MPI QUIET COMPONENTS CXX)

# Optional: what needs NCCL is compiled where the headers of NCCL and of the CUDA driver are found: in the system's places, where NCCL_HOME and CUDA_HOME
# say, or where cmake/fetch-nccl has put them. The libraries are looked for when a program runs.
set(cache $ENV{XDG_CACHE_HOME})
if(NOT cache)
  set(cache $ENV{HOME}/.cache)
endif()
file(SHA256 ${CMAKE_CURRENT_LIST_DIR}/nccl-requirements.txt digest)
string(SUBSTRING ${digest} 0 12 digest)
set(RINGMASTER_NCCL_FOLDER ${cache}/ringmaster/nccl-${digest}/nvidia)
if(NOT EXISTS ${NCCL_INCLUDE_DIR}/nccl.h)  # found before, and gone, as with another version
  unset(NCCL_INCLUDE_DIR CACHE)
  unset(CUDA_INCLUDE_DIR CACHE)
  unset(CCCL_INCLUDE_DIR CACHE)
endif()
find_path(NCCL_INCLUDE_DIR nccl.h HINTS ENV NCCL_HOME ENV CUDA_HOME PATHS /usr/local/cuda ${RINGMASTER_NCCL_FOLDER}/nccl PATH_SUFFIXES include)
find_path(CUDA_INCLUDE_DIR cuda.h HINTS ENV CUDA_HOME PATHS /usr/local/cuda ${RINGMASTER_NCCL_FOLDER}/cu13 PATH_SUFFIXES include)
find_path(CCCL_INCLUDE_DIR nv/target HINTS ${CUDA_INCLUDE_DIR}/cccl ${CUDA_INCLUDE_DIR})  # CUDA's own headers include it
set(RINGMASTER_NCCL OFF)
if(NCCL_INCLUDE_DIR AND CUDA_INCLUDE_DIR AND CCCL_INCLUDE_DIR)
  include(CheckCXXSourceCompiles)
  set(CMAKE_REQUIRED_INCLUDES ${NCCL_INCLUDE_DIR} ${CUDA_INCLUDE_DIR} ${CCCL_INCLUDE_DIR})
  check_cxx_source_compiles("#include <cuda.h>
#include <nccl.h>
int main() { ncclConfig_t config = NCCL_CONFIG_INITIALIZER; return config.maxCTAs; }" NCCL_COMPILES)
  unset(CMAKE_REQUIRED_INCLUDES)
  set(RINGMASTER_NCCL ${NCCL_COMPILES})
  if(NOT NCCL_COMPILES)
    unset(NCCL_COMPILES CACHE)  # looked at again next time
  endif()
endif()
if(RINGMASTER_NCCL)
  add_library(nccl_headers INTERFACE)
  target_include_directories(nccl_headers SYSTEM INTERFACE ${NCCL_INCLUDE_DIR} ${CUDA_INCLUDE_DIR} ${CCCL_INCLUDE_DIR})
  target_link_libraries(nccl_headers INTERFACE ${CMAKE_DL_LIBS})
else()
  message(STATUS "Without NCCL: nccl.h (2.17 or newer) and cuda.h are not there, so `ringmaster bench collectives --transport nccl` is left out; `make nccl` fetches them")
endif()
