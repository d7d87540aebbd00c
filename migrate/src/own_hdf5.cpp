/* SPDX-License-Identifier: BSD-3-Clause */
#define ZCM_HDF5_DECLARED_ONLY
#include "own_hdf5.h"

#include <dlfcn.h>
#include <exception>
#include <string>

#include "error.h"
#include "hdf5_loading.h"

namespace zc::migrate {

namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int kHow = RTLD_NOW | RTLD_LOCAL; /* sanitizers do not work with the other */
#else
constexpr int kHow = RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND;
#endif

template <typename Pointer>
void find(Pointer &found, void *library, const char *name)
{
    found = reinterpret_cast<Pointer>(dlsym(library, name));
    if (!found)
        throw error(ENOENT, std::string(ZCM_HDF5_LIBRARY) + " has no " + name);
}

} // namespace

own_hdf5::own_hdf5()
{
    void *shared = dlopen(ZCM_HDF5_LIBRARY, RTLD_NOW | RTLD_NOLOAD);
    if (shared)
        dlclose(shared); /* the program has the very same one */
    void *library = dlopen(ZCM_HDF5_LIBRARY, kHow);
    if (!library)
        throw error(ENOENT, std::string("cannot load HDF5: ") + dlerror());
#define ZCM_FIND(name) find(name##_own, library, #name);
    ZCM_HDF5_FUNCTIONS(ZCM_FIND)
    ZCM_HDF5_LOCKING(ZCM_FIND)
    ZCM_HDF5_IDENTIFIERS(ZCM_FIND)
#undef ZCM_FIND
    if (shared)
        return;
    /* At the exit of the process HDF5 closes what is open, and crashes where it could not write to
     * a disk that is full. All of ours has been closed by then. */
    decltype(&::H5dont_atexit) dont_atexit;
    find(dont_atexit, library, "H5dont_atexit");
    dont_atexit();
}

const own_hdf5 &own_hdf5::get()
{
    static const own_hdf5 only;
    return only;
}

void load_hdf5_ahead() noexcept
{
    try {
        own_hdf5::get();
    } catch (const std::exception &) {
        return;
    }
}

} // namespace zc::migrate
