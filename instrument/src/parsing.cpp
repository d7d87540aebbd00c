/* SPDX-License-Identifier: BSD-3-Clause */
#include "parsing.h"

#include <array>
#include <clang/Tooling/CompilationDatabase.h>
#include <clang/Tooling/Tooling.h>
#include <cstdio>
#include <sstream>

namespace zc::instrument {

namespace tooling = clang::tooling;

namespace {

/* The folders that the compiler of MPI looks into. */
std::vector<std::string> folders_of(const std::string &mpicc)
{
    std::vector<std::string> found;
    if (mpicc.empty())
        return found;
    std::string said;
    const std::string command = mpicc + " -show 2>/dev/null";
    std::FILE *pipe = popen(command.c_str(), "r");
    if (!pipe)
        return found;
    std::array<char, 4096> part{};
    while (std::fgets(part.data(), part.size(), pipe))
        said += part.data();
    pclose(pipe);
    std::istringstream words(said);
    for (std::string word; words >> word;)
        if (word.rfind("-I", 0) == 0)
            found.push_back("-isystem" + word.substr(2));
    return found;
}

std::unique_ptr<program> run(const tooling::CompilationDatabase &database,
                             const std::vector<std::string> &files,
                             const std::vector<std::string> &more)
{
    tooling::ClangTool tool(database, files);
    std::vector<std::string> all{"-resource-dir=" ZC_CLANG_RESOURCES, "-w", "-fsyntax-only"};
    all.insert(all.end(), more.begin(), more.end());
    tool.appendArgumentsAdjuster(
        tooling::getInsertArgumentAdjuster(all, tooling::ArgumentInsertPosition::END));
    std::vector<std::unique_ptr<clang::ASTUnit>> units;
    if (tool.buildASTs(units) != 0)
        return nullptr;
    for (const auto &unit : units)
        if (unit->getDiagnostics().hasErrorOccurred())
            return nullptr;
    return std::make_unique<program>(std::move(units));
}

} // namespace

std::unique_ptr<program> parse(const std::vector<std::string> &files, const compilation &how)
{
    const auto folders = folders_of(how.mpicc);
    if (!how.database.empty()) {
        std::string error;
        const auto database = tooling::CompilationDatabase::loadFromDirectory(how.database, error);
        if (!database) {
            std::fprintf(stderr, "zcm-instrument: %s", error.c_str());
            return nullptr;
        }
        auto more = how.flags;
        more.insert(more.end(), folders.begin(), folders.end());
        return run(*database, files, more);
    }
    return run(tooling::FixedCompilationDatabase(".", how.flags), files, folders);
}

std::unique_ptr<program> parse_text(const std::vector<std::pair<std::string, std::string>> &files)
{
    std::vector<std::unique_ptr<clang::ASTUnit>> units;
    for (const auto &[name, text] : files) {
        auto unit = tooling::buildASTFromCodeWithArgs(
            text, {"-xc", "-std=gnu11", "-w", "-resource-dir=" ZC_CLANG_RESOURCES}, name);
        if (!unit || unit->getDiagnostics().hasErrorOccurred())
            return nullptr;
        units.push_back(std::move(unit));
    }
    return std::make_unique<program>(std::move(units));
}

} // namespace zc::instrument
