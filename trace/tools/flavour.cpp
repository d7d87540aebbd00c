/* SPDX-License-Identifier: BSD-3-Clause */
#include "zct/flavour.h"

#include <array>
#include <string_view>

#include "elf.h"
#include "program_file.h"

namespace fs = std::filesystem;

namespace zc::zct {

namespace {

struct sign {
    std::string_view prefix;
    flavour is;
};

/* MPICH's library is libmpi.so.12 (the common ABI), Debian's libmpich.so.12. */
constexpr std::array kLibraries = {
    sign{"libmpi.so.12", flavour::mpich},     sign{"libmpich", flavour::mpich},
    sign{"libmpifort.so.12", flavour::mpich}, sign{"libmpicxx.so.12", flavour::mpich},
    sign{"libmpi.so.40", flavour::openmpi},   sign{"libmpi_mpifh", flavour::openmpi},
    sign{"libmpi_usempi", flavour::openmpi},  sign{"libmpi_cxx", flavour::openmpi},
    sign{"libmpi.so.20", flavour::openmpi},   sign{"libmpi.so.", flavour::mpich},
};

constexpr std::array kLaunchers = {
    sign{"mpiexec.hydra", flavour::mpich},     sign{"mpiexec.mpich", flavour::mpich},
    sign{"mpirun.mpich", flavour::mpich},      sign{"mpiexec.gforker", flavour::mpich},
    sign{"orterun", flavour::openmpi},         sign{"prterun", flavour::openmpi},
    sign{"mpiexec.openmpi", flavour::openmpi},
};

std::optional<flavour> flavour_of_program(const fs::path &program)
{
    for (const std::string &library : needed_libraries(program))
        for (const sign &s : kLibraries)
            if (library.starts_with(s.prefix))
                return s.is;
    return {};
}

} // namespace

const char *flavour_name(flavour f)
{
    return f == flavour::mpich ? "mpich" : "openmpi";
}

std::optional<flavour> flavour_parse(const std::string &name)
{
    if (name == "mpich")
        return flavour::mpich;
    if (name == "openmpi")
        return flavour::openmpi;
    return {};
}

std::optional<flavour> flavour_of_launcher(const fs::path &program)
{
    std::error_code problem;
    const fs::path real = fs::canonical(program, problem);
    for (const sign &s : kLaunchers)
        if (real.filename() == s.prefix)
            return s.is;
    const std::string called = program.filename().string();
    if (!called.starts_with("mpiexec") && !called.starts_with("mpirun"))
        return {};
    for (const std::string &library : needed_libraries(real))
        if (library.starts_with("libopen-rte") || library.starts_with("libprrte"))
            return flavour::openmpi;
    return {};
}

std::optional<flavour> flavour_of_command(const std::vector<std::string> &command)
{
    const fs::path first = program_file(command.front());
    const auto launcher = flavour_of_launcher(first);
    for (const std::string &word : command)
        if (const auto found = flavour_of_program(program_file(word)))
            return found;
    return launcher ? launcher : flavour_of_launcher(program_file("mpiexec"));
}

} // namespace zc::zct
