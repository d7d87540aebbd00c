/* SPDX-License-Identifier: BSD-3-Clause */

/* zc-trace: runs an MPI program and keeps a trace of its messages. */

#include <algorithm>
#include <exception>
#include <iostream>
#include <stdexcept>
#include <string>
#include <vector>

#include "dump.h"
#include "zct/launch.h"
#include "zct/trace.h"

namespace fs = std::filesystem;
using namespace zc::zct;

namespace {

constexpr const char *kHelp =
    R"(usage: zc-trace [options] [--] COMMAND...
       zc-trace dump [--help] ...

Runs COMMAND (mpiexec -n 4 ./program, or anything that starts MPI programs) and
writes what every rank sends and receives into a folder, a file per rank.

  -o, --output DIR   the folder (default: trace.zct here, or trace-2.zct, ...)
      --force        replace a trace that is in DIR
      --calls        record the calls that wait and where they are made, too
      --mpi NAME     the program's MPI: mpich (and derivatives) or openmpi
                     (default: as the program or the launcher is linked)
      --json         end with one line of JSON on standard output
      --help, --version

exit: the command's code; 125 zc-trace failed, 126 the command cannot be run,
127 it was not found
)";

struct arguments {
    launch_options launch;
    bool json = false;
    bool help = false;
    bool version = false;
};

std::string value_of(const std::vector<std::string> &words, std::size_t &i, std::size_t equals)
{
    if (equals != std::string::npos)
        return words[i].substr(equals + 1);
    if (i + 1 == words.size())
        throw std::invalid_argument(words[i] + " needs a value");
    return words[++i];
}

arguments parse(const std::vector<std::string> &words)
{
    arguments a;
    std::size_t i = 0;
    for (; i < words.size() && words[i].size() > 1 && words[i][0] == '-'; i++) {
        if (words[i] == "--") {
            i++;
            break;
        }
        const std::size_t equals =
            words[i].starts_with("--") ? words[i].find('=') : std::string::npos;
        const std::string name = words[i].substr(0, equals);
        if (name == "-o" || name == "--output") {
            a.launch.folder = value_of(words, i, equals);
        } else if (name == "--mpi") {
            const std::string value = value_of(words, i, equals);
            a.launch.mpi = flavour_parse(value);
            if (!a.launch.mpi)
                throw std::invalid_argument("--mpi: mpich or openmpi, not " + value);
        } else if (name == "--force") {
            a.launch.replace = true;
        } else if (name == "--calls") {
            a.launch.calls = true;
        } else if (name == "--json") {
            a.json = true;
        } else if (name == "--help" || name == "-h") {
            a.help = true;
        } else if (name == "--version") {
            a.version = true;
        } else {
            throw std::invalid_argument("unknown option " + words[i]);
        }
    }
    a.launch.command.assign(words.begin() + static_cast<std::ptrdiff_t>(i), words.end());
    if (!a.help && !a.version && a.launch.command.empty())
        throw std::invalid_argument("which command?");
    return a;
}

/** What was written, over all ranks. */
struct totals {
    std::int32_t processes = 0;
    std::uint64_t ranks = 0;
    std::uint64_t complete = 0;
    std::uint64_t receives = 0;
    std::uint64_t sends = 0;
    std::uint64_t collectives = 0;
    std::uint64_t bytes = 0;
    std::uint64_t unreadable = 0;
    std::string reason; /* of the first file that cannot be read */
};

void leave_out(totals &t, const std::string &reason)
{
    if (t.unreadable++ == 0)
        t.reason = reason;
}

void add(totals &t, const fs::path &file)
{
    try {
        const summary s = summarize(file);
        t.ranks++;
        t.processes = std::max(t.processes, s.processes);
        t.complete += s.complete;
        t.receives += s.receives;
        t.sends += s.sends;
        t.collectives += s.collectives;
        t.bytes += s.file_bytes;
    } catch (const error &e) {
        leave_out(t, e.what());
    } catch (const std::exception &e) { /* of memory, for one */
        leave_out(t, file.string() + ": " + e.what());
    }
}

totals count(const fs::path &folder)
{
    totals t;
    for (const fs::path &file : trace_files(folder))
        add(t, file);
    return t;
}

std::string quoted(const std::string &text)
{
    std::string out = "\"";
    for (const char c : text) {
        if (c == '"' || c == '\\')
            out += '\\';
        out += c;
    }
    return out + '"';
}

void print_json(const launch_result &result, const totals &t)
{
    const bool written = t.ranks || t.unreadable;
    std::cout << "{\"trace\":" << (written ? quoted(result.folder.string()) : "null")
              << ",\"mpi\":\"" << flavour_name(result.mpi) << "\",\"exit\":" << result.exit_code
              << ",\"processes\":" << t.processes << ",\"ranks\":" << t.ranks
              << ",\"complete\":" << t.complete << ",\"receives\":" << t.receives
              << ",\"sends\":" << t.sends << ",\"collectives\":" << t.collectives
              << ",\"bytes\":" << t.bytes << ",\"unreadable\":" << t.unreadable
              << ",\"reason\":" << (t.unreadable ? quoted(t.reason) : "null") << "}" << std::endl;
}

void print_text(const launch_result &result, const totals &t)
{
    if (t.unreadable) {
        std::cerr << "zc-trace: " << t.unreadable << " of " << t.ranks + t.unreadable
                  << " files cannot be read: " << t.reason << "\n";
        if (!t.ranks)
            return;
    }
    if (!t.ranks) {
        std::cerr << "zc-trace: no MPI program ran to MPI_Init: no trace was written\n";
        return;
    }
    std::cerr << "zc-trace: " << t.ranks << " ranks, " << t.receives << " receives, " << t.sends
              << " sends, " << t.collectives << " collective calls, " << t.bytes << " bytes in "
              << fs::proximate(result.folder).string() << "\n";
    if (t.complete < t.ranks)
        std::cerr << "zc-trace: " << t.ranks - t.complete
                  << " of them did not reach MPI_Finalize: what they did last may be missing\n";
}

int trace(const arguments &a)
{
    const launch_result result = launch(a.launch);
    try {
        const totals t = count(result.folder);
        print_text(result, t);
        if (a.json)
            print_json(result, t);
        if (!std::cout) {
            std::cerr << "zc-trace: standard output: cannot be written\n";
            return result.exit_code ? result.exit_code : kExitFailed;
        }
    } catch (const std::exception &e) { /* the command went as it went */
        std::cerr << "zc-trace: " << result.folder.string() << ": cannot be counted: " << e.what()
                  << "\n";
    }
    return result.exit_code;
}

int run_main(const std::vector<std::string> &words)
{
    if (!words.empty() && words[0] == "dump")
        return dump({words.begin() + 1, words.end()});
    const arguments a = parse(words);
    if (a.help) {
        std::cout << kHelp;
        return 0;
    }
    if (a.version) {
        std::cout << "zc-trace " ZC_VERSION_TEXT "\n";
        return 0;
    }
    return trace(a);
}

} // namespace

int main(int argc, char **argv)
{
    try {
        return run_main({argv + 1, argv + argc});
    } catch (const launch_error &e) {
        std::cerr << "zc-trace: " << e.what() << "\n";
        return e.code;
    } catch (const std::invalid_argument &e) {
        std::cerr << "zc-trace: " << e.what() << " (zc-trace --help)\n";
        return kExitFailed;
    } catch (const std::exception &e) {
        std::cerr << "zc-trace: " << e.what() << "\n";
        return kExitFailed;
    }
}
