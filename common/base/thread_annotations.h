// Annotations for Clang's thread safety analysis; they mean nothing to other compilers. mutex.h
// says how they are used.
#ifndef TANDEM_COMMON_BASE_THREAD_ANNOTATIONS_H_
#define TANDEM_COMMON_BASE_THREAD_ANNOTATIONS_H_

#ifdef __clang__
#define TANDEM_THREAD_ANNOTATION(...) __attribute__((__VA_ARGS__))
#else
#define TANDEM_THREAD_ANNOTATION(...)
#endif

// A member that may be touched only with `mutex` held.
#define TANDEM_GUARDED_BY(mutex) TANDEM_THREAD_ANNOTATION(guarded_by(mutex))
// A function that its callers call with the mutex held, or without it.
#define TANDEM_REQUIRES(...) TANDEM_THREAD_ANNOTATION(requires_capability(__VA_ARGS__))
#define TANDEM_EXCLUDES(...) TANDEM_THREAD_ANNOTATION(locks_excluded(__VA_ARGS__))
// A function that the analysis can't follow: it is given the mutex, or what needs it.
#define TANDEM_NO_THREAD_SAFETY_ANALYSIS TANDEM_THREAD_ANNOTATION(no_thread_safety_analysis)

#endif  // TANDEM_COMMON_BASE_THREAD_ANNOTATIONS_H_
