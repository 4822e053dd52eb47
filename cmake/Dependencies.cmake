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
