package detect

import "strings"

// techniqueTable has what rules refer to, of ATT&CK v19: id and name. In v19 the
// tactic Defense Evasion became Stealth and Defense Impairment, T1562 became
// T1685, and T1070.002 became T1685.006.
const techniqueTable = `
T1003.007 OS Credential Dumping: Proc Filesystem
T1003.008 OS Credential Dumping: /etc/passwd and /etc/shadow
T1027 Obfuscated Files or Information
T1027.015 Obfuscated Files or Information: Compression
T1036 Masquerading
T1036.005 Masquerading: Match Legitimate Resource Name or Location
T1041 Exfiltration Over C2 Channel
T1046 Network Service Discovery
T1048 Exfiltration Over Alternative Protocol
T1053.003 Scheduled Task/Job: Cron
T1055 Process Injection
T1055.008 Process Injection: Ptrace System Calls
T1055.009 Process Injection: Proc Memory
T1059 Command and Scripting Interpreter
T1059.004 Command and Scripting Interpreter: Unix Shell
T1068 Exploitation for Privilege Escalation
T1069 Permission Groups Discovery
T1070.003 Indicator Removal: Clear Command History
T1071 Application Layer Protocol
T1071.001 Application Layer Protocol: Web Protocols
T1071.004 Application Layer Protocol: DNS
T1078 Valid Accounts
T1082 System Information Discovery
T1083 File and Directory Discovery
T1090 Proxy
T1090.004 Proxy: Domain Fronting
T1095 Non-Application Layer Protocol
T1098.004 Account Manipulation: SSH Authorized Keys
T1105 Ingress Tool Transfer
T1132.001 Data Encoding: Standard Encoding
T1136.001 Create Account: Local Account
T1140 Deobfuscate/Decode Files or Information
T1190 Exploit Public-Facing Application
T1195.002 Supply Chain Compromise: Compromise Software Supply Chain
T1204.002 User Execution: Malicious File
T1218 System Binary Proxy Execution
T1485 Data Destruction
T1489 Service Stop
T1496.001 Resource Hijacking: Compute Hijacking
T1499 Endpoint Denial of Service
T1499.001 Endpoint Denial of Service: OS Exhaustion Flood
T1528 Steal Application Access Token
T1529 System Shutdown/Reboot
T1543.002 Create or Modify System Process: Systemd Service
T1546 Event Triggered Execution
T1546.004 Event Triggered Execution: Unix Shell Configuration Modification
T1547.006 Boot or Logon Autostart Execution: Kernel Modules and Extensions
T1548.001 Abuse Elevation Control Mechanism: Setuid and Setgid
T1548.003 Abuse Elevation Control Mechanism: Sudo and Sudo Caching
T1550.001 Use Alternate Authentication Material: Application Access Token
T1552.001 Unsecured Credentials: Credentials In Files
T1552.003 Unsecured Credentials: Shell History
T1552.004 Unsecured Credentials: Private Keys
T1552.005 Unsecured Credentials: Cloud Instance Metadata API
T1554 Compromise Host Software Binary
T1555 Credentials from Password Stores
T1559 Inter-Process Communication
T1560 Archive Collected Data
T1563.001 Remote Service Session Hijacking: SSH Hijacking
T1564 Hide Artifacts
T1565.001 Data Manipulation: Stored Data Manipulation
T1567 Exfiltration Over Web Service
T1572 Protocol Tunneling
T1574 Hijack Execution Flow
T1574.006 Hijack Execution Flow: Dynamic Linker Hijacking
T1574.007 Hijack Execution Flow: Path Interception by PATH Environment Variable
T1588.002 Obtain Capabilities: Tool
T1609 Container Administration Command
T1610 Deploy Container
T1611 Escape to Host
T1613 Container and Resource Discovery
T1620 Reflective Code Loading
T1621 Multi-Factor Authentication Request Generation
T1674 Input Injection
T1685 Disable or Modify Tools
T1685.006 Disable or Modify Tools: Clear Linux or Mac System Logs
AML.T0053 AI Agent Tool Invocation
`

// TechniqueName is what ATT&CK calls a technique; "" for one that no built-in
// rule refers to.
func TechniqueName(id string) string {
	_, rest, _ := strings.Cut(techniqueTable, "\n"+id+" ")
	name, _, _ := strings.Cut(rest, "\n")
	return name
}
