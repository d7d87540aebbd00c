/* SPDX-License-Identifier: BSD-3-Clause */
/* zcm-instrument(1): puts a safe point into an MPI program, and registers what is live there. */
#include "parsing.h"
#include "report.h"

#include <CLI/CLI.hpp>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>

namespace {

namespace fs = std::filesystem;

/* Also the exit status. */
enum outcome {
    written = 0,
    refused = 1,
    usage = 2,
    not_compiled = 3,
    no_loop = 4,
    not_written = 5
};

struct options {
    std::vector<std::string> files;
    zc::instrument::compilation compilation;
    zc::instrument::settings settings;
    std::string output;
    bool in_place = false, dry_run = false, json = false;
};

bool write_file(const fs::path &path, const std::string &text)
{
    std::ofstream out(path, std::ios::binary | std::ios::trunc);
    out << text;
    out.close();
    if (!out)
        fmt::print(stderr, "zcm-instrument: {} cannot be written\n", path.string());
    return static_cast<bool>(out);
}

/* Where @source goes. */
fs::path target_of(const options &how, const fs::path &source)
{
    if (how.in_place)
        return source;
    const fs::path output = how.output;
    return output.extension() == ".c" ? output : output / source.filename();
}

fs::path folder_of(const options &how)
{
    if (how.in_place)
        return fs::absolute(how.files.front()).parent_path();
    const fs::path output = how.output;
    return output.extension() == ".c" ? fs::absolute(output).parent_path() : output;
}

int write_all(const options &how, const zc::instrument::rewritten &result)
{
    std::error_code error;
    fs::create_directories(folder_of(how), error);
    for (const auto &file : how.files) {
        const auto source = fs::absolute(file).lexically_normal();
        const auto found = result.sources.find(source.string());
        std::string text;
        if (found != result.sources.end()) {
            text = found->second;
        } else {
            std::ifstream in(source, std::ios::binary);
            text.assign(std::istreambuf_iterator<char>(in), {});
        }
        if (!write_file(target_of(how, source), text))
            return not_written;
    }
    if (!write_file(folder_of(how) / "zcm_state.c", result.state_c) ||
        !write_file(folder_of(how) / "zcm_state.h", result.state_h))
        return not_written;
    return written;
}

int run(const options &how)
{
    auto sources = zc::instrument::parse(how.files, how.compilation);
    if (!sources)
        return not_compiled;
    const auto found = zc::instrument::analyse(std::move(sources), how.settings);
    fmt::print("{}", how.json ? report_json(found) : report_text(found));
    if (!found.refused.empty())
        return refused;
    if (!found.chosen)
        return no_loop;
    return how.dry_run ? written : write_all(how, found.result);
}

} // namespace

int main(int argc, char **argv)
{
    options how;
    std::vector<std::string> own(argv + 1, argv + argc);
    if (const auto end = std::find(own.begin(), own.end(), "--"); end != own.end()) {
        how.compilation.flags.assign(end + 1, own.end());
        own.erase(end, own.end());
    }
    how.compilation.mpicc = "mpicc";
    CLI::App app{
        "Put a safe point into an MPI program in C, and register what is live there. Flags of "
        "the compiler follow after --.",
        "zcm-instrument"};
    app.set_version_flag("--version", ZC_VERSION);
    app.add_option("SOURCE", how.files, "all C sources of the program")
        ->required()
        ->check(CLI::ExistingFile);
    app.add_option("-o,--output", how.output,
                   "a folder for the sources that are written; of one source also its name (*.c)");
    app.add_flag("--in-place", how.in_place, "overwrite the sources");
    app.add_flag("--dry-run", how.dry_run, "write nothing; report only");
    app.add_flag("--json", how.json, "the report as JSON");
    app.add_option("--loop", how.settings.loop, "FILE:LINE of the loop that gets the safe point");
    app.add_option("--threshold", how.settings.threshold,
                   "share of the program's cost that a loop needs (0.1)")
        ->check(CLI::Range(0.0, 1.0));
    app.add_flag("--strict", how.settings.is_strict,
                 "refuse loops whose messages are only assumed to be matched");
    app.add_option("-p,--database", how.compilation.database,
                   "a folder with compile_commands.json");
    app.add_option("--mpicc", how.compilation.mpicc,
                   "the compiler whose folders of headers are used (mpicc)");
    try {
        std::reverse(own.begin(), own.end());
        app.parse(own);
    } catch (const CLI::ParseError &error) {
        return app.exit(error) == 0 ? written : usage;
    }
    const int places = how.in_place + how.dry_run + !how.output.empty();
    if (places != 1) {
        fmt::print(stderr, "zcm-instrument: one of --output, --in-place and --dry-run is needed\n");
        return usage;
    }
    if (how.files.size() > 1 && fs::path(how.output).extension() == ".c") {
        fmt::print(stderr, "zcm-instrument: {} sources cannot become the one {}\n",
                   how.files.size(), how.output);
        return usage;
    }
    return run(how);
}
