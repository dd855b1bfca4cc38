import QtQuick 2.0

// Makes, changes and takes away some things, and ends.
Rectangle {
    width: 200; height: 100
    property int made: 0
    Component { id: item; Text { text: "number " + made; font.pixelSize: 8 + made % 5 } }
    Timer {
        interval: 5; running: true; repeat: true
        onTriggered: {
            var one = item.createObject(parent, {x: made})
            if (made % 2)
                one.destroy()
            if (++made === 23)
                Qt.quit()
        }
    }
}
