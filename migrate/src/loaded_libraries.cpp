/* SPDX-License-Identifier: BSD-3-Clause */
#include "loaded_libraries.h"

#include <algorithm>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <map>
#include <mutex>
#include <sys/auxv.h>
#include <tuple>
#include <utility>

#include "error.h"
#include "object_identity.h"

namespace zc::migrate {

namespace {

/** An object as the loader has it. */
struct found_object {
    std::string path, build_id;
    std::uintptr_t begin = 0; /* of its first segment */
};

struct found_objects {
    std::vector<found_object> all;
    unsigned long long unloaded = 0; /* libraries, so far */
};

int note_object(dl_phdr_info *object, std::size_t, void *argument)
{
    auto &found = *static_cast<found_objects *>(argument);
    found.unloaded = object->dlpi_subs;
    const std::uintptr_t vdso = getauxval(AT_SYSINFO_EHDR);
    std::uintptr_t begin = 0;
    bool is_vdso = false, has_segment = false;
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) &part = object->dlpi_phdr[i];
        if (part.p_type != PT_LOAD)
            continue;
        const std::uintptr_t at = object->dlpi_addr + part.p_vaddr;
        begin = has_segment ? std::min(begin, at) : at;
        has_segment = true;
        is_vdso |= vdso >= at && vdso < at + part.p_memsz;
    }
    /* The program has no name. */
    if (object->dlpi_name && *object->dlpi_name && !is_vdso && has_segment)
        found.all.push_back({object->dlpi_name, build_id_of(*object), begin});
    return 0;
}

/** Has the file that is mapped at @address lost its name since? The number of the file if so. */
std::uint64_t replaced_file(std::uintptr_t address)
{
    constexpr std::string_view kLost = " (deleted)";
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);) {
        std::uintptr_t begin = 0, end = 0;
        std::uint64_t inode = 0;
        if (std::sscanf(line.c_str(), "%" SCNxPTR "-%" SCNxPTR " %*s %*s %*s %" SCNu64, &begin,
                        &end, &inode) == 3 &&
            address >= begin && address < end)
            return line.ends_with(kLost) ? inode : 0;
    }
    return 0;
}

/** Of a library without a build-id, which may be large: it is read once, and soon, as its file may
 * be replaced later. */
std::string identity_by_file(const found_object &object, unsigned long long unloaded)
{
    static std::mutex guard;
    static std::map<std::pair<std::string, std::uintptr_t>, std::string> known;
    static unsigned long long of = 0;
    const std::lock_guard lock(guard);
    if (of != unloaded) /* another one may be where one of them was */
        known.clear();
    of = unloaded;
    std::string &identity = known[{object.path, object.begin}];
    if (identity.empty()) {
        const std::uint64_t inode = replaced_file(object.begin);
        identity = inode ? "replaced-" + std::to_string(inode) : checksum_of(object.path);
    }
    return identity;
}

std::string_view name_of(std::string_view path)
{
    const std::size_t slash = path.rfind('/');
    return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

/** Which of @all has a path, or a name; nullptr: several have. */
using found_by = std::map<std::string_view, const loaded_library *>;

template <typename Key>
found_by index(const loaded_libraries &all, Key key)
{
    found_by found;
    for (const loaded_library &one : all.all())
        if (const auto [at, is_first] = found.emplace(key(one), &one); !is_first)
            at->second = nullptr;
    return found;
}

const loaded_library *only(const found_by &all, std::string_view key)
{
    const auto at = all.find(key);
    return at == all.end() ? nullptr : at->second;
}

} // namespace

std::string_view loaded_library::name() const
{
    return name_of(path);
}

std::string loaded_library::printable(std::string_view path)
{
    constexpr char digits[] = "0123456789ABCDEF";
    std::string text;
    for (const char c : path) {
        const auto byte = static_cast<unsigned char>(c);
        if (byte > ' ' && byte < 0x7f && c != '%')
            text += c;
        else
            text.append({'%', digits[byte >> 4], digits[byte & 15]});
    }
    return text;
}

loaded_libraries loaded_libraries::of_this_process()
{
    found_objects found;
    dl_iterate_phdr(note_object, &found);
    loaded_libraries all;
    for (const found_object &one : found.all) {
        std::string identity =
            one.build_id.empty() ? identity_by_file(one, found.unloaded) : one.build_id;
        if (!identity.empty()) /* a file that cannot be read cannot be compared */
            all.add(loaded_library::printable(one.path), std::move(identity));
    }
    return all;
}

void loaded_libraries::add(std::string path, std::string identity)
{
    all_.push_back({std::move(path), std::move(identity)});
}

std::string loaded_libraries::to_text() const
{
    std::vector<std::string> lines;
    for (const loaded_library &one : all_)
        lines.push_back(one.identity + " " + one.path + "\n");
    std::ranges::sort(lines);
    std::string text;
    for (const std::string &line : lines)
        text += line;
    return text;
}

loaded_libraries loaded_libraries::from_text(std::string_view text)
{
    loaded_libraries all;
    while (!text.empty()) {
        const std::string_view line = text.substr(0, text.find('\n'));
        const std::size_t blank = line.find(' ');
        if (line.size() == text.size() || blank == std::string_view::npos || blank == 0 ||
            blank + 1 == line.size())
            throw error(EBADMSG, "no library in '" + std::string(line) + "'");
        all.add(std::string(line.substr(blank + 1)), std::string(line.substr(0, blank)));
        text.remove_prefix(line.size() + 1);
    }
    return all;
}

std::vector<other_library> other_libraries(const loaded_libraries &ours,
                                           const loaded_libraries &theirs)
{
    const auto path = [](const loaded_library &one) { return std::string_view(one.path); };
    const auto name = [](const loaded_library &one) { return one.name(); };
    const found_by our_paths = index(ours, path), our_names = index(ours, name);
    const found_by their_paths = index(theirs, path), their_names = index(theirs, name);
    std::vector<other_library> found;
    for (const loaded_library &one : ours.all()) {
        const loaded_library *other = nullptr;
        if (their_paths.contains(one.path))
            other = only(our_paths, one.path) ? only(their_paths, one.path) : nullptr;
        else if (only(our_names, one.name()))
            other = only(their_names, one.name());
        if (other && other->identity != one.identity)
            found.push_back({one, *other});
    }
    return found;
}

std::string why_other_libraries(const loaded_libraries &ours, const loaded_libraries &theirs,
                                const std::string &host)
{
    const std::vector<other_library> found = other_libraries(ours, theirs);
    if (found.empty())
        return "";
    const auto &[needed, there] = found.front();
    std::string text = "host " + host + " has another build of the library " + needed.path +
                       ": found " + there.identity;
    if (there.path != needed.path)
        text += " (" + there.path + ")";
    text += ", needed " + needed.identity;
    if (found.size() > 1)
        text += "; and of " + std::to_string(found.size() - 1) + " more";
    return text + " (ZC_MIGRATE_OTHER_LIBRARIES)";
}

} // namespace zc::migrate
