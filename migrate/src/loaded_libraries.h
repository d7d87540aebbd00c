/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace zc::migrate {

/** By what a library of one process is found among those of another. */
enum class pairing {
    by_path,
    by_name, /* too: its file has the name by which others are linked with it (DT_SONAME) */
};

/** A shared library that a process has loaded. */
struct loaded_library {
    std::string path; /* as the loader has it; see printable() */
    std::string identity;
    pairing paired = pairing::by_path;

    /** The last part of the path. */
    std::string_view name() const;
    /** A path may have any bytes: those that are no printable ASCII, blanks and % become %XX. */
    static std::string printable(std::string_view path);
};

/** The shared libraries that a process has loaded: those that it is linked with and those that it
 * has opened, but for the program itself and what the kernel maps (vdso). */
class loaded_libraries {
  public:
    /**
     * Of this process, now. A library without a build-id has the checksum of the file that it is
     * mapped from. If that has been replaced since it was loaded, and before the first look, then
     * it cannot be told what it is: it has the identity "replaced-INODE", which equals no other,
     * not even the same.
     */
    static loaded_libraries of_this_process();

    void add(loaded_library one);
    const std::vector<loaded_library> &all() const noexcept { return all_; }

    /** "IDENTITY PATH", or "IDENTITY name PATH" of one that is paired by name, in each line, in an
     * order that does not depend on when they were loaded. */
    std::string to_text() const;
    /** Throws error(EBADMSG). */
    static loaded_libraries from_text(std::string_view text);

  private:
    std::vector<loaded_library> all_;
};

/** A library that two processes have, and not the same build of it. */
struct other_library {
    loaded_library ours, theirs;
};

/**
 * Libraries which both have, and of which the builds are not the same. One is the other's if it has
 * the same path; else if both are paired by name, and they have the same one, which no further one
 * of these has on either side. Files of one name that do not call themselves by it, such as plugins
 * in several folders, may be anything. What only one side has, or what could be one of several, is
 * not compared.
 */
std::vector<other_library> other_libraries(const loaded_libraries &ours,
                                           const loaded_libraries &theirs);
/** Why a rank with @ours cannot go on on @host, in a sentence that names the first that is another
 * build; "" if it can. */
std::string why_other_libraries(const loaded_libraries &ours, const loaded_libraries &theirs,
                                const std::string &host);

} // namespace zc::migrate
