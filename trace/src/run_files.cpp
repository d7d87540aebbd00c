/* SPDX-License-Identifier: BSD-3-Clause */
#include "run_files.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <optional>
#include <unordered_set>

namespace fs = std::filesystem;

namespace zc::zct {

namespace {

/** "r12.zct" → 12. */
std::optional<std::int32_t> rank_of(const fs::path &file)
{
    const std::string name = file.filename().string();
    std::int32_t rank = 0;
    const char *begin = name.data() + 1;
    const char *end = name.data() + name.size() - std::min<std::size_t>(name.size(), 4);
    if (!name.ends_with(".zct") || name.size() < 6 || name[0] != 'r')
        return {};
    const auto [stop, problem] = std::from_chars(begin, end, rank);
    return problem == std::errc{} && stop == end && rank >= 0 ? std::optional(rank) : std::nullopt;
}

/** The r<rank>.zct files of a folder, in order of ranks. */
std::vector<fs::path> files_in(const fs::path &folder, std::error_code &problem)
{
    std::vector<std::pair<std::int32_t, fs::path>> found;
    for (fs::directory_iterator at(folder, problem), end; !problem && at != end;
         at.increment(problem))
        if (const auto rank = rank_of(at->path()))
            found.emplace_back(*rank, at->path());
    std::sort(found.begin(), found.end());
    std::vector<fs::path> files;
    files.reserve(found.size());
    for (auto &[rank, file] : found)
        files.push_back(std::move(file));
    return files;
}

std::vector<fs::path> files_of(const fs::path &path)
{
    std::error_code problem;
    if (!fs::is_directory(path, problem))
        return {path};
    std::vector<fs::path> files = files_in(path, problem);
    if (problem)
        throw error(path.string() + ": " + problem.message());
    if (files.empty())
        throw error(path.string() + ": no r<rank>.zct files in this folder");
    return files;
}

/** A file that can be read to its end, more than once. */
file_records count_whole(const fs::path &file)
{
    file_records counted = count_records(file);
    if (counted.clocks.size() > 1) /* are all times such that they can be corrected? */
        each_block(file, counted, [](const file_records &) {});
    return counted;
}

} // namespace

std::string run_name(const fs::path &path)
{
    fs::path whole = fs::absolute(path).lexically_normal();
    if (!fs::is_directory(path))
        whole = whole.parent_path();
    else if (whole.filename().empty()) /* a trailing slash */
        whole = whole.parent_path();
    return whole.extension() == ".zct" ? whole.stem().string() : whole.filename().string();
}

std::vector<run_file> count_files(const fs::path &path, std::vector<std::string> *unreadable)
{
    std::vector<run_file> files;
    std::unordered_set<std::int32_t> ranks;
    for (const fs::path &file : files_of(path)) {
        try {
            files.push_back({file, count_whole(file)});
        } catch (const error &e) {
            if (!unreadable)
                throw;
            unreadable->emplace_back(e.what());
            continue;
        }
        const file_records &first = files.front().counted;
        const file_records &last = files.back().counted;
        if (last.run != first.run || last.processes != first.processes)
            throw error(file.string() + ": is of another run than the files beside it");
        if (!ranks.insert(last.rank).second)
            throw error(file.string() + ": the same rank as another file");
    }
    if (files.empty())
        throw error(unreadable->front());
    std::sort(files.begin(), files.end(),
              [](const run_file &a, const run_file &b) { return a.counted.rank < b.counted.rank; });
    return files;
}

bool is_trace_file(const fs::path &file)
{
    char magic[ZCT_MAGIC_BYTES] = {};
    std::ifstream in(file, std::ios::binary);
    in.read(magic, sizeof(magic));
    return in && std::equal(magic, magic + sizeof(magic), ZCT_MAGIC);
}

bool is_trace_folder(const fs::path &folder)
{
    std::error_code problem;
    for (const fs::directory_entry &entry : fs::directory_iterator(folder, problem))
        if (rank_of(entry.path()))
            return true;
    return false;
}

std::vector<fs::path> trace_files(const fs::path &folder)
{
    std::error_code problem;
    std::vector<fs::path> files = files_in(folder, problem);
    for (fs::directory_iterator at(folder, problem), end; !problem && at != end;
         at.increment(problem)) {
        const std::string name = at->path().filename().string();
        std::error_code ignored;
        if (!name.starts_with("spawned-") || !name.ends_with(".zct") || at->is_symlink(ignored) ||
            !at->is_directory(ignored))
            continue;
        const std::vector<fs::path> more = files_in(at->path(), ignored);
        files.insert(files.end(), more.begin(), more.end());
    }
    std::erase_if(files, [&](const fs::path &file) { return fs::is_directory(file, problem); });
    return files;
}

} // namespace zc::zct
