public class JavaNative {
    static native void lose(String text);

    public static void main(String[] arguments) {
        for (int i = 0; i < 1000; i++) System.identityHashCode(new byte[1000]);
        if (arguments.length == 0) return;
        System.load(arguments[0]);
        for (int i = 0; i < 7; i++) lose("seven" + i);
    }
}
