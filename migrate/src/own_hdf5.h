/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include <hdf5.h>

namespace zc::migrate {

/* What libzcm uses of HDF5. */
/* clang-format would make stairs of the lists. */
/* clang-format off */
#define ZCM_HDF5_FUNCTIONS(X)                                                                  \
    X(H5check_version) X(H5open) X(H5Aclose) X(H5Acreate2) X(H5Aexists) X(H5Aopen)             \
    X(H5Aread) X(H5Awrite) X(H5Dclose) X(H5Dcreate2) X(H5Dget_chunk_info_by_coord)             \
    X(H5Dget_create_plist) X(H5Dget_space) X(H5Dget_storage_size) X(H5Dget_type) X(H5Dopen2)   \
    X(H5Dread) X(H5Dwrite) X(H5Dwrite_chunk) X(H5Eget_auto2) X(H5Eset_auto2) X(H5Fclose)       \
    X(H5Fcreate) X(H5Fflush) X(H5Fget_file_image) X(H5Fget_vfd_handle) X(H5Fopen)              \
    X(H5Gget_info) X(H5Lexists) X(H5Lget_name_by_idx) X(H5Pclose) X(H5Pcreate)                 \
    X(H5Pget_layout) X(H5Pset_chunk) X(H5Pset_chunk_cache) X(H5Pset_fapl_core)                 \
    X(H5Pset_file_image) X(H5Pset_file_image_callbacks) X(H5Sclose) X(H5Screate)               \
    X(H5Screate_simple) X(H5Sget_simple_extent_npoints) X(H5Sselect_hyperslab)                 \
    X(H5Tarray_create2) X(H5Tclose) X(H5Tcopy) X(H5Tcreate) X(H5Tequal)                        \
    X(H5Tget_array_dims2) X(H5Tget_class) X(H5Tget_member_type) X(H5Tget_nmembers)             \
    X(H5Tget_super) X(H5Tinsert) X(H5Tset_size)
/* clang-format on */
#if H5_VERSION_GE(1, 10, 7)
#define ZCM_HDF5_LOCKING(X) X(H5Pset_file_locking)
#else
#define ZCM_HDF5_LOCKING(X)
#endif
/* clang-format off */
#define ZCM_HDF5_IDENTIFIERS(X)                                                                \
    X(H5P_CLS_DATASET_ACCESS_ID_g) X(H5P_CLS_DATASET_CREATE_ID_g)                              \
    X(H5P_CLS_FILE_ACCESS_ID_g) X(H5T_C_S1_g) X(H5T_IEEE_F32LE_g) X(H5T_IEEE_F64LE_g)          \
    X(H5T_NATIVE_B8_g) X(H5T_NATIVE_DOUBLE_g) X(H5T_NATIVE_FLOAT_g) X(H5T_NATIVE_INT8_g)       \
    X(H5T_NATIVE_INT16_g) X(H5T_NATIVE_INT32_g) X(H5T_NATIVE_INT64_g)                          \
    X(H5T_NATIVE_LDOUBLE_g) X(H5T_NATIVE_UINT8_g) X(H5T_NATIVE_UINT16_g)                       \
    X(H5T_NATIVE_UINT32_g) X(H5T_NATIVE_UINT64_g) X(H5T_STD_B8LE_g) X(H5T_STD_I8LE_g)          \
    X(H5T_STD_I16LE_g) X(H5T_STD_I32LE_g) X(H5T_STD_I64LE_g) X(H5T_STD_U8LE_g)                 \
    X(H5T_STD_U16LE_g) X(H5T_STD_U32LE_g) X(H5T_STD_U64LE_g)
/* clang-format on */

/**
 * A copy of HDF5 that is libzcm's alone. The program may use HDF5, too, of another version: among
 * the libraries that it is linked with, its would be found first, by libzcm and by libzcm's HDF5,
 * and end the process for what does not fit. This one is loaded aside, and finds itself first.
 */
struct own_hdf5 {
#define ZCM_FUNCTION(name) decltype(&::name) name##_own;
#define ZCM_IDENTIFIER(name) const hid_t *name##_own;
    ZCM_HDF5_FUNCTIONS(ZCM_FUNCTION)
    ZCM_HDF5_LOCKING(ZCM_FUNCTION)
    ZCM_HDF5_IDENTIFIERS(ZCM_IDENTIFIER)
#undef ZCM_FUNCTION
#undef ZCM_IDENTIFIER

    /** Loads it when it is called first. Throws error(ENOENT) if it cannot be. */
    static const own_hdf5 &get();

  private:
    own_hdf5();
};

} // namespace zc::migrate

/* From here on these names mean our copy's. */
#ifndef ZCM_HDF5_DECLARED_ONLY
#define H5check_version (::zc::migrate::own_hdf5::get().H5check_version_own)
#define H5open (::zc::migrate::own_hdf5::get().H5open_own)
#define H5Aclose (::zc::migrate::own_hdf5::get().H5Aclose_own)
#define H5Acreate2 (::zc::migrate::own_hdf5::get().H5Acreate2_own)
#define H5Aexists (::zc::migrate::own_hdf5::get().H5Aexists_own)
#define H5Aopen (::zc::migrate::own_hdf5::get().H5Aopen_own)
#define H5Aread (::zc::migrate::own_hdf5::get().H5Aread_own)
#define H5Awrite (::zc::migrate::own_hdf5::get().H5Awrite_own)
#define H5Dclose (::zc::migrate::own_hdf5::get().H5Dclose_own)
#define H5Dcreate2 (::zc::migrate::own_hdf5::get().H5Dcreate2_own)
#define H5Dget_chunk_info_by_coord (::zc::migrate::own_hdf5::get().H5Dget_chunk_info_by_coord_own)
#define H5Dget_create_plist (::zc::migrate::own_hdf5::get().H5Dget_create_plist_own)
#define H5Dget_space (::zc::migrate::own_hdf5::get().H5Dget_space_own)
#define H5Dget_storage_size (::zc::migrate::own_hdf5::get().H5Dget_storage_size_own)
#define H5Dget_type (::zc::migrate::own_hdf5::get().H5Dget_type_own)
#define H5Dopen2 (::zc::migrate::own_hdf5::get().H5Dopen2_own)
#define H5Dread (::zc::migrate::own_hdf5::get().H5Dread_own)
#define H5Dwrite (::zc::migrate::own_hdf5::get().H5Dwrite_own)
#define H5Dwrite_chunk (::zc::migrate::own_hdf5::get().H5Dwrite_chunk_own)
#define H5Eget_auto2 (::zc::migrate::own_hdf5::get().H5Eget_auto2_own)
#define H5Eset_auto2 (::zc::migrate::own_hdf5::get().H5Eset_auto2_own)
#define H5Fclose (::zc::migrate::own_hdf5::get().H5Fclose_own)
#define H5Fcreate (::zc::migrate::own_hdf5::get().H5Fcreate_own)
#define H5Fflush (::zc::migrate::own_hdf5::get().H5Fflush_own)
#define H5Fget_file_image (::zc::migrate::own_hdf5::get().H5Fget_file_image_own)
#define H5Fget_vfd_handle (::zc::migrate::own_hdf5::get().H5Fget_vfd_handle_own)
#define H5Fopen (::zc::migrate::own_hdf5::get().H5Fopen_own)
#define H5Gget_info (::zc::migrate::own_hdf5::get().H5Gget_info_own)
#define H5Lexists (::zc::migrate::own_hdf5::get().H5Lexists_own)
#define H5Lget_name_by_idx (::zc::migrate::own_hdf5::get().H5Lget_name_by_idx_own)
#define H5Pclose (::zc::migrate::own_hdf5::get().H5Pclose_own)
#define H5Pcreate (::zc::migrate::own_hdf5::get().H5Pcreate_own)
#define H5Pget_layout (::zc::migrate::own_hdf5::get().H5Pget_layout_own)
#define H5Pset_chunk (::zc::migrate::own_hdf5::get().H5Pset_chunk_own)
#define H5Pset_chunk_cache (::zc::migrate::own_hdf5::get().H5Pset_chunk_cache_own)
#define H5Pset_fapl_core (::zc::migrate::own_hdf5::get().H5Pset_fapl_core_own)
#define H5Pset_file_image (::zc::migrate::own_hdf5::get().H5Pset_file_image_own)
#define H5Pset_file_image_callbacks (::zc::migrate::own_hdf5::get().H5Pset_file_image_callbacks_own)
#define H5Sclose (::zc::migrate::own_hdf5::get().H5Sclose_own)
#define H5Screate (::zc::migrate::own_hdf5::get().H5Screate_own)
#define H5Screate_simple (::zc::migrate::own_hdf5::get().H5Screate_simple_own)
#define H5Sget_simple_extent_npoints                                                               \
    (::zc::migrate::own_hdf5::get().H5Sget_simple_extent_npoints_own)
#define H5Sselect_hyperslab (::zc::migrate::own_hdf5::get().H5Sselect_hyperslab_own)
#define H5Tarray_create2 (::zc::migrate::own_hdf5::get().H5Tarray_create2_own)
#define H5Tclose (::zc::migrate::own_hdf5::get().H5Tclose_own)
#define H5Tcopy (::zc::migrate::own_hdf5::get().H5Tcopy_own)
#define H5Tcreate (::zc::migrate::own_hdf5::get().H5Tcreate_own)
#define H5Tequal (::zc::migrate::own_hdf5::get().H5Tequal_own)
#define H5Tget_array_dims2 (::zc::migrate::own_hdf5::get().H5Tget_array_dims2_own)
#define H5Tget_class (::zc::migrate::own_hdf5::get().H5Tget_class_own)
#define H5Tget_member_type (::zc::migrate::own_hdf5::get().H5Tget_member_type_own)
#define H5Tget_nmembers (::zc::migrate::own_hdf5::get().H5Tget_nmembers_own)
#define H5Tget_super (::zc::migrate::own_hdf5::get().H5Tget_super_own)
#define H5Tinsert (::zc::migrate::own_hdf5::get().H5Tinsert_own)
#define H5Tset_size (::zc::migrate::own_hdf5::get().H5Tset_size_own)
#define H5Pset_file_locking (::zc::migrate::own_hdf5::get().H5Pset_file_locking_own)
#define H5P_CLS_DATASET_ACCESS_ID_g                                                                \
    (*::zc::migrate::own_hdf5::get().H5P_CLS_DATASET_ACCESS_ID_g_own)
#define H5P_CLS_DATASET_CREATE_ID_g                                                                \
    (*::zc::migrate::own_hdf5::get().H5P_CLS_DATASET_CREATE_ID_g_own)
#define H5P_CLS_FILE_ACCESS_ID_g (*::zc::migrate::own_hdf5::get().H5P_CLS_FILE_ACCESS_ID_g_own)
#define H5T_C_S1_g (*::zc::migrate::own_hdf5::get().H5T_C_S1_g_own)
#define H5T_IEEE_F32LE_g (*::zc::migrate::own_hdf5::get().H5T_IEEE_F32LE_g_own)
#define H5T_IEEE_F64LE_g (*::zc::migrate::own_hdf5::get().H5T_IEEE_F64LE_g_own)
#define H5T_NATIVE_B8_g (*::zc::migrate::own_hdf5::get().H5T_NATIVE_B8_g_own)
#define H5T_NATIVE_DOUBLE_g (*::zc::migrate::own_hdf5::get().H5T_NATIVE_DOUBLE_g_own)
#define H5T_NATIVE_FLOAT_g (*::zc::migrate::own_hdf5::get().H5T_NATIVE_FLOAT_g_own)
#define H5T_NATIVE_INT8_g (*::zc::migrate::own_hdf5::get().H5T_NATIVE_INT8_g_own)
#define H5T_NATIVE_INT16_g (*::zc::migrate::own_hdf5::get().H5T_NATIVE_INT16_g_own)
#define H5T_NATIVE_INT32_g (*::zc::migrate::own_hdf5::get().H5T_NATIVE_INT32_g_own)
#define H5T_NATIVE_INT64_g (*::zc::migrate::own_hdf5::get().H5T_NATIVE_INT64_g_own)
#define H5T_NATIVE_LDOUBLE_g (*::zc::migrate::own_hdf5::get().H5T_NATIVE_LDOUBLE_g_own)
#define H5T_NATIVE_UINT8_g (*::zc::migrate::own_hdf5::get().H5T_NATIVE_UINT8_g_own)
#define H5T_NATIVE_UINT16_g (*::zc::migrate::own_hdf5::get().H5T_NATIVE_UINT16_g_own)
#define H5T_NATIVE_UINT32_g (*::zc::migrate::own_hdf5::get().H5T_NATIVE_UINT32_g_own)
#define H5T_NATIVE_UINT64_g (*::zc::migrate::own_hdf5::get().H5T_NATIVE_UINT64_g_own)
#define H5T_STD_B8LE_g (*::zc::migrate::own_hdf5::get().H5T_STD_B8LE_g_own)
#define H5T_STD_I8LE_g (*::zc::migrate::own_hdf5::get().H5T_STD_I8LE_g_own)
#define H5T_STD_I16LE_g (*::zc::migrate::own_hdf5::get().H5T_STD_I16LE_g_own)
#define H5T_STD_I32LE_g (*::zc::migrate::own_hdf5::get().H5T_STD_I32LE_g_own)
#define H5T_STD_I64LE_g (*::zc::migrate::own_hdf5::get().H5T_STD_I64LE_g_own)
#define H5T_STD_U8LE_g (*::zc::migrate::own_hdf5::get().H5T_STD_U8LE_g_own)
#define H5T_STD_U16LE_g (*::zc::migrate::own_hdf5::get().H5T_STD_U16LE_g_own)
#define H5T_STD_U32LE_g (*::zc::migrate::own_hdf5::get().H5T_STD_U32LE_g_own)
#define H5T_STD_U64LE_g (*::zc::migrate::own_hdf5::get().H5T_STD_U64LE_g_own)
#endif
