<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE TS>
<TS version="2.1" language="de_DE">
<context>
    <name>Window</name>
    <message><source>A window</source><translation>Ein Fenster</translation></message>
    <message numerus="yes"><source>%n blocks</source>
        <translation><numerusform>%n Block</numerusform><numerusform>%n Blöcke</numerusform></translation>
    </message>
</context>
</TS>
