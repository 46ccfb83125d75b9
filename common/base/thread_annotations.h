// Annotations for Clang's thread safety analysis; other compilers ignore them. mutex.h shows their
// use.
#ifndef TANDEM_COMMON_BASE_THREAD_ANNOTATIONS_H_
#define TANDEM_COMMON_BASE_THREAD_ANNOTATIONS_H_

#ifdef __clang__
#define TANDEM_THREAD_ANNOTATION(...) __attribute__((__VA_ARGS__))
#else
#define TANDEM_THREAD_ANNOTATION(...)
#endif

// A member that may be accessed only with `mutex` held.
#define TANDEM_GUARDED_BY(mutex) TANDEM_THREAD_ANNOTATION(guarded_by(mutex))
// A function that must be called with the mutex held, or without it.
#define TANDEM_REQUIRES(...) TANDEM_THREAD_ANNOTATION(requires_capability(__VA_ARGS__))
#define TANDEM_EXCLUDES(...) TANDEM_THREAD_ANNOTATION(locks_excluded(__VA_ARGS__))
// A function that the analysis can't follow: the mutex, or data guarded by it, is passed in.
#define TANDEM_NO_THREAD_SAFETY_ANALYSIS TANDEM_THREAD_ANNOTATION(no_thread_safety_analysis)

#endif  // TANDEM_COMMON_BASE_THREAD_ANNOTATIONS_H_
