/* Native methods of JavaNative.java that lose what they allocate, and what Java hands them. */
#include <jni.h>
#include <stdlib.h>

JNIEXPORT void JNICALL Java_JavaNative_lose(JNIEnv *env, jclass class, jstring text)
{
	(void)class;
	(*env)->GetStringUTFChars(env, text, 0);
	*(volatile char *)malloc(333) = 1;
}
