// What moc and qdbuscpp2xml read.
#include <QObject>

class Widget : public QObject {
    Q_OBJECT
    Q_CLASSINFO("D-Bus Interface", "org.example.Widget")
    Q_PROPERTY(int width READ width WRITE setWidth NOTIFY widthChanged)

public:
    enum Shape { Round, Square };
    Q_ENUM(Shape)
    Q_INVOKABLE int area(int width, int height) const;
    int width() const;

public slots:
    Q_SCRIPTABLE void setWidth(int width);

signals:
    Q_SCRIPTABLE void widthChanged(int width);
};
